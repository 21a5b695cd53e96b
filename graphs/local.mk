libcore_la_SOURCES += \
	graphs/adapter_parameters.c \
	graphs/attention.c graphs/attention.h \
	graphs/deliver.c graphs/deliver.h \
	graphs/denoiser.h \
	graphs/denoising_count.c graphs/denoising_count.h \
	graphs/denoising_error.c graphs/denoising_error.h \
	graphs/diffusion.c graphs/diffusion.h \
	graphs/latent_tokens.c graphs/latent_tokens.h \
	graphs/latent_transform.c graphs/latent_transform.h \
	graphs/linear.c graphs/linear.h \
	graphs/noised_latents.c graphs/noised_latents.h \
	graphs/layers/activation.c graphs/layers/attention.c graphs/layers/layers.h \
	graphs/layers/linear.c graphs/layers/low_rank.c graphs/layers/low_rank.h graphs/layers/norm.c graphs/layers/residual.c \
	graphs/layers/tape.c graphs/layers/tape.h \
	graphs/parameters.c graphs/parameters.h \
	graphs/step_cache.c graphs/step_cache.h \
	graphs/tensors.c graphs/tensors.h \
	graphs/text_encoder.h \
	graphs/trained.c graphs/trained.h graphs/trained_pass.h \
	graphs/trained_planes.c graphs/trained_probe.c graphs/trained_weights.c \
	graphs/value.h \
	graphs/weight_forms.c graphs/weight_forms.h graphs/weight_parts.h \
	graphs/merge.c graphs/merge.h \
	graphs/weight_layers.c graphs/weights.c graphs/weights.h \
	graphs/pixart/adapted.c \
	graphs/pixart/block.c graphs/pixart/block.h \
	graphs/pixart/conditions.c graphs/pixart/conditions.h \
	graphs/pixart/cross_cache.c graphs/pixart/cross_cache.h \
	graphs/pixart/dit.c graphs/pixart/dit.h \
	graphs/pixart/forward.c graphs/pixart/forward.h \
	graphs/pixart/shards.c graphs/pixart/shards.h \
	graphs/pixart/train.c graphs/pixart/train.h \
	graphs/pixart/weights.c graphs/pixart/weights.h \
	graphs/strategy/choose.c graphs/strategy/choose.h \
	graphs/strategy/cost.c graphs/strategy/cost.h \
	graphs/strategy/read.c \
	graphs/strategy/strategy.c graphs/strategy/strategy.h \
	graphs/t5/bands.c \
	graphs/t5/layers.c \
	graphs/t5/load.c \
	graphs/t5/t5.c graphs/t5/t5.h graphs/t5/parts.h \
	graphs/vae/attention.c \
	graphs/vae/cost.c graphs/vae/cost.h \
	graphs/vae/ends.c graphs/vae/ends.h \
	graphs/vae/feature_map.c graphs/vae/feature_map.h \
	graphs/vae/net.c graphs/vae/net.h \
	graphs/vae/pass.c graphs/vae/pass.h \
	graphs/vae/plan.c graphs/vae/plan.h \
	graphs/vae/search.c
