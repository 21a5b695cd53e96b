# The description that `smalti topology` prints
if !SIMGRID
libcore_la_SOURCES += \
	src/topology/hwloc.c \
	src/topology/libraries.c \
	src/topology/measure.c \
	src/topology/starpu.c \
	src/topology/topology.c src/topology/topology.h
endif
