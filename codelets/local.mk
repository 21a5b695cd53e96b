# Sources of codelets
EXTRA_DIST += codelets/codelets.def
