# Opens and closes sessions
libcore_la_SOURCES += \
	src/session/open.c \
	src/session/policies.c src/session/policies.h \
	src/session/reproducible.c src/session/reproducible.h \
	src/session/scratch.c src/session/scratch.h \
	src/session/variables.c src/session/variables.h
