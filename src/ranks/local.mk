# The processes of an MPI job
libcore_la_SOURCES += src/ranks/ranks.h
if MPI
libcore_la_SOURCES += \
	src/ranks/links.c \
	src/ranks/mpi.c src/ranks/mpi.h
else
libcore_la_SOURCES += src/ranks/none.c
endif
