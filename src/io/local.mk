# Sources of src/io
libcore_la_SOURCES += \
	src/io/config.h
