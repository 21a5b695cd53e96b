# Sources of src/shard
libcore_la_SOURCES += \
	src/shard/arrays.c \
	src/shard/checksum.c \
	src/shard/deflate.c src/shard/deflate.h \
	src/shard/finish.c \
	src/shard/h5.c src/shard/h5.h \
	src/shard/h5_driver.c \
	src/shard/h5_write.c \
	src/shard/index.c src/shard/index.h \
	src/shard/layout.c src/shard/layout.h \
	src/shard/read.c \
	src/shard/shard.h \
	src/shard/types.c src/shard/types.h \
	src/shard/values.c \
	src/shard/write.c \
	src/shard/writer.h
