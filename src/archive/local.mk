# Sources of src/archive
libcore_la_SOURCES += \
	src/archive/tar.c src/archive/tar.h \
	src/archive/tar_writer.c src/archive/tar_writer.h \
	src/archive/zip_writer.c src/archive/zip_writer.h
