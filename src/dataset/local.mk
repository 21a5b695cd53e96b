# Sources of src/dataset
libcore_la_SOURCES += \
	src/dataset/braces.c \
	src/dataset/dataset.c src/dataset/dataset.h \
	src/dataset/dataset_csv.c \
	src/dataset/dataset_directory.c \
	src/dataset/dataset_fields.c \
	src/dataset/dataset_format.h \
	src/dataset/dataset_json.c \
	src/dataset/dataset_recognise.c \
	src/dataset/dataset_source.c \
	src/dataset/dataset_tar.c \
	src/dataset/dataset_tars.c \
	src/dataset/dataset_text.c \
	src/dataset/dataset_walk.c \
	src/dataset/spool.c
