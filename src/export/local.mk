# Sources of src/export
libcore_la_SOURCES += \
	src/export/export.c src/export/export.h \
	src/export/name.c \
	src/export/pixart.c \
	src/export/safetensors.c \
	src/export/share.c \
	src/export/sharding.c \
	src/export/state.c \
	src/export/webdataset.c
