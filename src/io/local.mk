# Sources of src/io
libcore_la_SOURCES += \
	src/io/checkpoint.c src/io/checkpoint.h \
	src/io/config_model.c src/io/config_transformer.c src/io/config_vae.c src/io/config_t5.c \
	src/io/config_scheduler.c src/io/config.h src/io/fields.c src/io/fields.h \
	src/io/prompts.c src/io/prompts.h src/io/prompt_json.c src/io/prompt_json.h \
	src/io/safetensors.c src/io/safetensors_write.c src/io/safetensors.h
