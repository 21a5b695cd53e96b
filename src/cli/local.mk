# The command: one file per subcommand over the option tables, which tests link too.
noinst_LTLIBRARIES += libcli.la
libcli_la_SOURCES = \
	src/cli/command.c src/cli/command.h \
	src/cli/help.c src/cli/help.h \
	src/cli/man.c \
	src/cli/notes.c \
	src/cli/options.c src/cli/options.h \
	src/cli/progress.c src/cli/progress.h \
	src/cli/suggest.c src/cli/suggest.h \
	src/cli/topology.c src/cli/topology.h \
	src/cli/topology_json.c \
	src/cli/topology_text.c

bin_PROGRAMS += smalti
smalti_SOURCES = \
	src/cli/main.c
nodist_EXTRA_smalti_SOURCES = force-c++-linking-smalti.cc
smalti_LDADD = libcli.la libcore.la
