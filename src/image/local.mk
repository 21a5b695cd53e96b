# Sources of src/image
libcore_la_SOURCES += \
	src/image/image.c src/image/image.h \
	src/image/image_decoder.h \
	src/image/image_jpeg.c \
	src/image/image_png.c \
	src/image/image_webp.c \
	src/image/image_writer.c src/image/image_writer.h \
	src/image/picture.c src/image/picture.h \
	src/image/png_reader.c src/image/png_reader.h \
	src/image/turned.c src/image/turned.h \
	src/image/write_png.c \
	src/image/write_ppm.c
