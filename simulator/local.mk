# The program smalti-sim, which `smalti simulate` starts: the same sources, built with StarPU's simulation.
if SIMGRID
EXTRA_PROGRAMS += smalti-sim
endif
smalti_sim_SOURCES = \
	simulator/case.c simulator/case.h \
	simulator/extraction.c \
	simulator/images.c \
	simulator/main.c \
	simulator/needs.c simulator/needs.h \
	simulator/outcome.c \
	simulator/training.c
nodist_EXTRA_smalti_sim_SOURCES = force-c++-linking-smalti-sim.cc
smalti_sim_LDADD = libbench.la libcli.la libcore.la

# Beside the programs of a build without simulation.
install-simulator: smalti-sim$(EXEEXT)
	$(MKDIR_P) "$(DESTDIR)$(pkglibexecdir)"
	$(LIBTOOL) --mode=install $(INSTALL_PROGRAM) smalti-sim$(EXEEXT) "$(DESTDIR)$(pkglibexecdir)/smalti-sim$(EXEEXT)"
.PHONY: install-simulator
