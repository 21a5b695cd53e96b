libcore_la_SOURCES += \
	src/jobs/transfer_report.c src/jobs/transfer_report.h \
	src/jobs/adapters.c src/jobs/adapters.h \
	src/jobs/batch.h src/jobs/batch_progress.c \
	src/jobs/bins.c src/jobs/bins.h \
	src/jobs/digest.c \
	src/jobs/follow.c src/jobs/follow.h \
	src/jobs/generate.c \
	src/jobs/image_file.c src/jobs/image_file.h \
	src/jobs/image_tasks.c \
	src/jobs/input_image.c src/jobs/input_image.h \
	src/jobs/interpolator.c src/jobs/interpolator.h \
	src/jobs/known_texts.c src/jobs/known_texts.h \
	src/jobs/quantize.c src/jobs/quantize.h \
	src/jobs/quantize_component.c src/jobs/quantize_component.h \
	src/jobs/queue.c src/jobs/queue.h \
	src/jobs/model.c src/jobs/model.h \
	src/jobs/plan.c src/jobs/plan.h \
	src/jobs/plan_image.c src/jobs/plan_image.h \
	src/jobs/plan_step_cache.c src/jobs/plan_step_cache.h \
	src/jobs/plan_load.c src/jobs/plan_strategy.c src/jobs/plan_strategy.h \
	src/jobs/precision.c src/jobs/precision.h \
	src/jobs/resizer.c src/jobs/resizer.h \
	src/jobs/step_cache.c src/jobs/step_cache.h \
	src/jobs/text.c \
	src/jobs/text_states.c \
	src/jobs/prompt_encoder.c src/jobs/prompt_encoder.h \
	src/jobs/unread.c \
	src/jobs/unused.c src/jobs/unused.h \
	src/jobs/variants.c src/jobs/variants.h \
	src/jobs/vae.c src/jobs/vae.h \
	src/jobs/vae_decode.c \
	src/jobs/vae_estimate.c \
	src/jobs/vae_follow.c src/jobs/vae_follow.h \
	src/jobs/vae_request.c \
	src/jobs/vae_speed.c
