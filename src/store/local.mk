# Sources of src/store
libcore_la_SOURCES += \
	src/store/run_log.c src/store/run_log.h \
	src/store/shard.h \
	src/store/store.h
