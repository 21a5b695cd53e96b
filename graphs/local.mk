libcore_la_SOURCES += \
	graphs/attention.c graphs/attention.h \
	graphs/denoiser.h \
	graphs/denoising_count.c graphs/denoising_count.h \
	graphs/denoising_error.c graphs/denoising_error.h \
	graphs/diffusion.c graphs/diffusion.h \
	graphs/dit.c graphs/dit.h \
	graphs/dit_block.c graphs/dit_block.h \
	graphs/dit_conditions.c graphs/dit_conditions.h \
	graphs/dit_cross_cache.c graphs/dit_cross_cache.h \
	graphs/dit_forward.c graphs/dit_forward.h \
	graphs/dit_shards.c graphs/dit_shards.h \
	graphs/dit_train.c graphs/dit_train.h graphs/dit_train_pass.c graphs/dit_train_pass.h \
	graphs/dit_train_backward.c \
	graphs/dit_train_block.c \
	graphs/dit_train_conditions.c \
	graphs/dit_train_ends.c \
	graphs/dit_train_layers.c \
	graphs/dit_train_linear.c \
	graphs/dit_train_probe.c \
	graphs/dit_weights.c graphs/dit_weights.h \
	graphs/features.c graphs/features.h \
	graphs/latent_tokens.c graphs/latent_tokens.h \
	graphs/latent_transform.c graphs/latent_transform.h \
	graphs/linear.c graphs/linear.h \
	graphs/noised_latents.c graphs/noised_latents.h \
	graphs/parameters.c graphs/parameters.h \
	graphs/strategy.c graphs/strategy.h \
	graphs/strategy_choose.c graphs/strategy_choose.h \
	graphs/strategy_cost.c graphs/strategy_cost.h \
	graphs/strategy_read.c \
	graphs/t5.c graphs/t5.h graphs/t5_parts.h \
	graphs/t5_bands.c \
	graphs/t5_layers.c \
	graphs/t5_load.c \
	graphs/text_encoder.h \
	graphs/tensors.c graphs/tensors.h \
	graphs/vae_attention.c \
	graphs/vae_cost.c graphs/vae_cost.h \
	graphs/vae_ends.c graphs/vae_ends.h \
	graphs/vae_net.c graphs/vae_net.h \
	graphs/vae_pass.c graphs/vae_pass.h \
	graphs/vae_plan.c graphs/vae_plan.h \
	graphs/vae_search.c \
	graphs/weight_forms.c graphs/weight_forms.h \
	graphs/weights.c graphs/weights.h
