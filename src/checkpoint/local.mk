# Sources of src/checkpoint
libcore_la_SOURCES += \
	src/checkpoint/adapter.c src/checkpoint/adapter.h \
	src/checkpoint/adapter_names.c src/checkpoint/adapter_names.h \
	src/checkpoint/adapter_scale.c src/checkpoint/adapter_scale.h \
	src/checkpoint/adapter_set.c src/checkpoint/adapter_set.h \
	src/checkpoint/checkpoint.c src/checkpoint/checkpoint.h \
	src/checkpoint/coding.c src/checkpoint/coding.h \
	src/checkpoint/config.h \
	src/checkpoint/config_model.c \
	src/checkpoint/config_scheduler.c \
	src/checkpoint/config_t5.c \
	src/checkpoint/config_transformer.c \
	src/checkpoint/config_vae.c \
	src/checkpoint/gguf.c src/checkpoint/gguf.h \
	src/checkpoint/gguf_config.c \
	src/checkpoint/gguf_names.c src/checkpoint/gguf_names.h \
	src/checkpoint/gguf_types.c src/checkpoint/gguf_types.h \
	src/checkpoint/inventory.c src/checkpoint/inventory.h \
	src/checkpoint/latents.c src/checkpoint/latents.h \
	src/checkpoint/npy.c src/checkpoint/npy.h \
	src/checkpoint/pipeline_directory.c src/checkpoint/pipeline_directory.h \
	src/checkpoint/safetensors.c src/checkpoint/safetensors.h \
	src/checkpoint/safetensors_write.c \
	src/checkpoint/scales.c src/checkpoint/scales.h
