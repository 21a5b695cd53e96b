# Sources of src/samplers
libcore_la_SOURCES += \
	src/samplers/config.h \
	src/samplers/noise.c src/samplers/noise.h
