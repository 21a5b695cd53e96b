# Sources of src/store
libcore_la_SOURCES += \
	src/store/claim.c src/store/clean.c src/store/commit.c src/store/complete.c \
	src/store/directory.c src/store/open.c src/store/directory.h src/store/store.h \
	src/store/failed.c \
	src/store/join.c \
	src/store/shards.c src/store/shards.h \
	src/store/run_log.c src/store/run_log.h src/store/run_read.c src/store/run_read.h \
	src/store/verify.c src/store/verify_shards.c src/store/checker.c src/store/checker.h
