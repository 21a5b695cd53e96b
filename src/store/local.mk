# Sources of src/store
libcore_la_SOURCES += \
	src/store/claim.c src/store/clean.c src/store/commit.c src/store/complete.c \
	src/store/folder.c src/store/open.c src/store/range.c src/store/folder.h src/store/store.h \
	src/store/claims.c src/store/claims.h \
	src/store/digest.c src/store/digest.h \
	src/store/failed.c src/store/failed.h \
	src/store/identity.c src/store/identity.h \
	src/store/join.c src/store/join.h \
	src/store/journal.c src/store/journal.h \
	src/store/layout.c src/store/layout.h \
	src/store/lock.c src/store/lock.h \
	src/store/process.c src/store/process.h \
	src/store/export.c src/store/export.h \
	src/store/export_item.c \
	src/store/export_name.c src/store/export_name.h \
	src/store/export_pixart.c \
	src/store/export_safetensors.c \
	src/store/export_state.c \
	src/store/export_values.c \
	src/store/export_webdataset.c \
	src/store/run_log.c src/store/run_log.h src/store/run_read.c src/store/run_read.h \
	src/store/sealed.c src/store/sealed.h \
	src/store/repair.c src/store/verify.c src/store/verify_shards.c src/store/checker.h \
	src/store/features.c src/store/features_order.c src/store/features_order.h \
	src/store/features_queue.c src/store/features_source.c src/store/features_queue.h \
	src/store/features_set.c src/store/features_set.h \
	src/store/h5.c src/store/h5_write.c src/store/h5.h src/store/h5_driver.c src/store/h5_driver.h \
	src/store/shard.h \
	src/store/shard_arrays.c src/store/shard_finish.c src/store/shard_locate.c \
	src/store/shard_write.c src/store/shard_writer.h \
	src/store/shard_checksum.c src/store/shard_layout.c src/store/shard_layout.h src/store/shard_types.c src/store/shard_types.h \
	src/store/shard_index.c src/store/shard_index_json.c src/store/shard_index.h \
	src/store/shard_read.c src/store/shard_values.c src/store/shard_values.h
