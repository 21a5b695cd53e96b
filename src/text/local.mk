# Sources of src/text
libcore_la_SOURCES += \
	src/text/cleaning.c src/text/cleaning.h \
	src/text/entities.c src/text/entities.h \
	src/text/fix_text.c \
	src/text/html_text.c \
	src/text/line_index.c src/text/line_index.h \
	src/text/pattern.c src/text/pattern.h \
	src/text/prompt_json.c \
	src/text/prompts.c src/text/prompts.h \
	src/text/utf8.c src/text/utf8.h

# The table of HTML's entities is made from Python's; the tarball has it.
EXTRA_DIST += src/text/entities.def
MAINTAINERCLEANFILES = $(srcdir)/src/text/entities.def
$(srcdir)/src/text/entities.def: $(srcdir)/scripts/entities
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/scripts/entities >$@.part && mv $@.part $@
src/text/entities.lo: $(srcdir)/src/text/entities.def
