# The process and the machine that it runs on
libcore_la_SOURCES += \
	src/host/cgroup.c src/host/cgroup.h \
	src/host/environment.c src/host/environment.h \
	src/host/machine.h \
	src/host/perf_directory.c src/host/perf_directory.h \
	src/host/placeholder.c src/host/placeholder.h \
	src/host/pool.c src/host/pool.h \
	src/host/threads.c src/host/threads.h \
	src/host/tile_memory.c src/host/tile_memory.h \
	src/host/wait.c src/host/wait.h
if SIMGRID
libcore_la_SOURCES += src/host/machine_simulated.c
else
libcore_la_SOURCES += src/host/machine.c
endif
