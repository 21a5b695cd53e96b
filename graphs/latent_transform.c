/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/latent_transform.h"
#include "kernels/groupnorm.h"

static struct smalti_tile *upload(struct smalti_task_group *task_group,
				  const struct smalti_vae_config *config, bool shift)
{
	SCOPED(free)
	float *values = smalti_task_group_calloc(task_group, config->latent_channels, sizeof(*values));
	for (int64_t c = 0; values && c < config->latent_channels; c++) {
		const struct smalti_latent_scale channel = smalti_vae_latent_scale(config, c);
		values[c] = (float)(shift ? channel.shift : channel.scale);
	}
	return values ? smalti_tile_upload(task_group, config->latent_channels, sizeof(*values), values)
		      : NULL;
}

/* Makes a GroupNorm with mean 0 and variance 1: its last operation is a scale and a shift for each
 * channel. */
struct smalti_latent_transform smalti_latent_transform_new(struct smalti_task_group *task_group,
							   const struct smalti_vae_config *config)
{
	const struct smalti_moments identity = {.count = 1, .mean = 0, .m2 = 1};
	return (struct smalti_latent_transform){
	    .scale = upload(task_group, config, false),
	    .shift = upload(task_group, config, true),
	    .identity = smalti_tile_upload(task_group, 1, sizeof(identity), &identity)};
}

void smalti_latent_transform_insert(struct smalti_task_group *task_group,
				    const struct smalti_latent_transform *transform, int64_t pixels,
				    int64_t channels, struct smalti_tile *x, struct smalti_tile *y)
{
	smalti_insert(groupnorm, task_group,
		      (.x = x, .moments = transform->identity, .gamma = transform->scale,
		       .beta = transform->shift, .y = y),
		      .pixels = pixels, .channels = channels, .groups = 1, .epsilon = 0, .dtype = SMALTI_F32);
}

void smalti_latent_transform_release(struct smalti_latent_transform *transform)
{
	smalti_tile_release(transform->scale);
	smalti_tile_release(transform->shift);
	smalti_tile_release(transform->identity);
}
