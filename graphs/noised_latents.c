/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/noised_latents.h"
#include "graphs/deliver.h"

struct smalti_noised_latents smalti_noised_latents_insert(struct smalti_task_group *task_group,
							  struct smalti_tile *moments,
							  const struct training_sample_arguments *arguments)
{
	const int64_t bytes = arguments->count * (int64_t)sizeof(float);
	const struct smalti_noised_latents latents = {
	    smalti_tile_new(task_group, 1, bytes), smalti_tile_new(task_group, 1, bytes),
	    smalti_tile_new(task_group, 1, bytes), arguments->count, arguments->t};
	const struct training_sample_buffers buffers = {
	    .moments = moments, .x0 = latents.x0, .noise = latents.noise, .xt = latents.xt};
	smalti_insert_training_sample(task_group, &buffers, arguments);
	return latents;
}

void smalti_noised_latents_release(const struct smalti_noised_latents *latents)
{
	smalti_tile_release(latents->x0);
	smalti_tile_release(latents->noise);
	smalti_tile_release(latents->xt);
}

void smalti_denoising_loss_insert(struct smalti_task_group *task_group,
				  const struct smalti_noised_latents *latents, struct smalti_tile *output,
				  struct smalti_tile *gradient,
				  const struct diffusion_loss_arguments *arguments,
				  struct smalti_loss_parts *parts)
{
	struct smalti_tile *tile = smalti_tile_new(task_group, 1, sizeof(*parts));
	const struct diffusion_loss_buffers buffers = {.x0 = latents->x0,
						       .noise = latents->noise,
						       .output = output,
						       .gradient = gradient,
						       .parts = tile};
	struct diffusion_loss_arguments of_latents = *arguments;
	of_latents.count = latents->count;
	of_latents.t = latents->t;
	smalti_insert_diffusion_loss(task_group, &buffers, &of_latents);
	smalti_deliver_to_all(task_group, tile, (int64_t)(sizeof(*parts) / sizeof(float)), parts);
	smalti_tile_release(tile);
}
