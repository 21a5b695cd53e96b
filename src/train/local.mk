# Sources of src/train
libcore_la_SOURCES += \
	src/train/adapter_config.c src/train/adapter_config.h \
	src/train/adapter_diffusers.c src/train/adapter_diffusers.h \
	src/train/data.c src/train/data.h src/train/data_sets.c src/train/data_sets.h src/train/dealing.c src/train/dealing.h \
	src/train/identity.c src/train/identity.h src/train/log.c src/train/null_caption.c src/train/null_caption.h \
	src/train/options.c src/train/run.c src/train/run.h src/train/run_batch.c src/train/run_fit.c src/train/run_null_caption.c src/train/run_open.c src/train/run_parts.h \
	src/train/saved.c src/train/saved.h src/train/tensors.c src/train/tensors.h \
	src/train/initial.c src/train/initial.h \
	src/train/sample_images.c src/train/sample_images.h \
	src/train/optimizer.c src/train/optimizer.h \
	src/train/evaluate.c src/train/memory.c src/train/order.c src/train/order.h src/train/refuse.c src/train/sample.c src/train/sample_count.c src/train/sample_count.h src/train/step.c src/train/trainer.c src/train/trainer.h \
	src/train/schedule.c src/train/schedule.h
