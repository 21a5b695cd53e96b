# Sources of src/simulation
libcore_la_SOURCES += \
	src/simulation/bounds.c src/simulation/bounds.h \
	src/simulation/machine.c src/simulation/machine.h \
	src/simulation/machine_files.c \
	src/simulation/measured.c src/simulation/measured.h
