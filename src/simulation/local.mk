# Sources of src/simulation
libcore_la_SOURCES += \
	src/simulation/bounds.c src/simulation/bounds.h \
	src/simulation/calibrate.c src/simulation/calibrate.h \
	src/simulation/crossings.c src/simulation/crossings.h \
	src/simulation/machine.c src/simulation/machine.h \
	src/simulation/machine_files.c \
	src/simulation/measured.c src/simulation/measured.h \
	src/simulation/schedule_file.c src/simulation/schedule_file.h \
	src/simulation/trace_events.c src/simulation/trace_events.h \
	src/simulation/trace_tasks.c src/simulation/trace_tasks.h
if SIMGRID
libcore_la_SOURCES += src/simulation/chosen.c src/simulation/chosen.h
endif
