# Sources of src/export
libcore_la_SOURCES += \
	src/export/export.c src/export/export.h \
	src/export/item.c \
	src/export/name.c src/export/name.h \
	src/export/pixart.c \
	src/export/safetensors.c \
	src/export/sharding.c src/export/sharding.h \
	src/export/state.c \
	src/export/values.c \
	src/export/webdataset.c
