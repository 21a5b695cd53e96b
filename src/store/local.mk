# Sources of src/store
libcore_la_SOURCES += \
	src/store/shard.h \
	src/store/store.h
