/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/dit.h"
#include "graphs/pixart/cross_cache.h"
#include "graphs/pixart/forward.h"

static int64_t working_bytes(const struct smalti_denoiser *denoiser, int64_t tokens, int64_t band_tokens,
			     int branches, const struct smalti_strategy *strategy)
{
	const struct smalti_dit *dit = (const struct smalti_dit *)denoiser;
	const int64_t row = dit->config.width * (int64_t)sizeof(float);
	/* each branch: x, q and kv of all bands; each band that is computed: h, attention's state and result,
	 * the MLP */
	const int64_t band = tokens < band_tokens ? tokens : band_tokens;
	const int64_t kept = smalti_strategy_keeps(strategy) ? 2 * dit->config.layers : 0;
	return branches * tokens * (4 + kept) * row + 2 * branches * band * 8 * row;
}

static void free_dit(struct smalti_denoiser *denoiser)
{
	struct smalti_dit *dit = (struct smalti_dit *)denoiser;
	if (!dit)
		return;
	smalti_dit_shards_free(dit);
	const bool borrowed = dit->adapted && dit->adapted->weights;
	if (!borrowed)
		smalti_weights_free(denoiser->weights);
	smalti_dit_adapted_free(dit->adapted);
	free(dit->blocks);
	free(dit);
}

static const struct smalti_denoiser_functions functions = {
    .free = free_dit,
    .cross_cache_bytes = smalti_dit_cross_cache_bytes,
    .working_bytes = working_bytes,
    .sketch = smalti_dit_sketch,
    .adapted = smalti_dit_adapt,
    .cross_cache = smalti_dit_cross_cache,
    .release_cross_cache = smalti_dit_release_cross_cache,
    .conditions = smalti_dit_conditions,
    .release_conditions = smalti_dit_release_conditions,
    .forward = smalti_dit_forward,
};

struct smalti_dit *smalti_dit_of(struct smalti_weights *weights,
				 const struct smalti_transformer_config *config, enum smalti_dtype compute,
				 struct smalti_error *error)
{
	struct smalti_dit *dit = weights ? smalti_calloc(1, sizeof(*dit), error) : NULL;
	if (!dit) {
		smalti_weights_free(weights);
		return NULL;
	}
	dit->denoiser = (struct smalti_denoiser){
	    .functions = &functions,
	    .weights = weights,
	    .in_channels = config->in_channels,
	    .out_channels = config->out_channels,
	    .patch_size = config->patch_size,
	    .sample_size = config->sample_size,
	    .layers = config->layers,
	    .width = config->width,
	    .text_width = config->caption_channels ? config->caption_channels : config->width};
	dit->config = *config;
	dit->compute = dit->attention = compute;
	dit->blocks = smalti_calloc(config->layers, sizeof(*dit->blocks), error);
	if (dit->blocks && smalti_dit_load(dit, error) == 0 && smalti_dit_train_adapters(dit, error) == 0)
		return dit;
	free_dit(&dit->denoiser);
	return NULL;
}

struct smalti_denoiser *smalti_dit_new(struct smalti_task_group *task_group,
				       const struct smalti_transformer_config *config,
				       const struct smalti_checkpoint *checkpoint, enum smalti_dtype compute,
				       struct smalti_error *error)
{
	if (smalti_transformer_config_check(config, checkpoint, error) < 0)
		return NULL;
	struct smalti_dit *dit =
	    smalti_dit_of(smalti_weights_new(task_group, checkpoint, compute, error), config, compute, error);
	return dit ? &dit->denoiser : NULL;
}

struct smalti_denoiser *smalti_dit_sketch(const struct smalti_denoiser *denoiser,
					  struct smalti_task_group *task_group,
					  const struct smalti_checkpoint *checkpoint, int64_t layers,
					  struct smalti_error *error)
{
	const struct smalti_dit *dit = (const struct smalti_dit *)denoiser;
	struct smalti_transformer_config config = dit->config;
	config.layers = layers;
	return smalti_dit_new(task_group, &config, checkpoint, dit->compute, error);
}
