# Sources of src/store
libcore_la_SOURCES += \
	src/store/claim.c src/store/clean.c src/store/commit.c src/store/complete.c \
	src/store/directory.c src/store/open.c src/store/directory.h src/store/store.h \
	src/store/claims.c src/store/claims.h \
	src/store/failed.c \
	src/store/heartbeat.c src/store/hold.c src/store/hold.h \
	src/store/identity.c src/store/identity.h \
	src/store/join.c \
	src/store/shards.c src/store/shards.h \
	src/store/lock.c src/store/lock.h \
	src/store/run_log.c src/store/run_log.h src/store/run_read.c src/store/run_read.h \
	src/store/sealed.c src/store/sealed.h \
	src/store/verify.c src/store/verify_shards.c src/store/checker.c src/store/checker.h
