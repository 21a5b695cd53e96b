# Sources of codelets
