# Sources of src/extract
libcore_la_SOURCES += \
	src/extract/extract.c \
	src/extract/fetcher.c \
	src/extract/job_images.c src/extract/job_texts.c \
	src/extract/jobs.c src/extract/jobs.h \
	src/extract/identity.c \
	src/extract/options.c \
	src/extract/parts.c src/extract/parts.h \
	src/extract/row_writer.c \
	src/extract/run_record.c \
	src/extract/shard_items.c src/extract/shard_items.h \
	src/extract/sizes.c src/extract/sizes.h \
	src/extract/window.c src/extract/window.h
