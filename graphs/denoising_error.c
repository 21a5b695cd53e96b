/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/denoising_error.h"
#include "graphs/latent_tokens.h"
#include "graphs/noised_latents.h"

static int64_t values_of(const struct smalti_denoiser *denoiser, const struct smalti_denoising_error *e)
{
	return denoiser->in_channels * e->height * e->width;
}

static int64_t tokens_of(const struct smalti_denoiser *denoiser, const struct smalti_denoising_error *e)
{
	return e->height / denoiser->patch_size * (e->width / denoiser->patch_size);
}

int64_t smalti_denoising_error_bytes(const struct smalti_denoiser *denoiser,
				     const struct smalti_denoising_error *e)
{
	const int64_t input = e->height * e->width * denoiser->in_channels * (int64_t)sizeof(float);
	const int64_t output = e->height * e->width * denoiser->out_channels * (int64_t)sizeof(float);
	/* the means, the latents, the noise, and both together as planes and as tokens; the output as both */
	return 5 * input + 2 * output +
	       denoiser->functions->working_bytes(denoiser, tokens_of(denoiser, e), e->band_tokens, 1,
						  &smalti_strategy_none);
}

static struct smalti_noised_latents noised(const struct smalti_denoiser *denoiser,
					   struct smalti_task_group *task_group,
					   const struct smalti_denoising_error *e)
{
	const struct training_sample_arguments arguments = {.count = values_of(denoiser, e),
							    .t = e->timestep,
							    .seed = e->seed,
							    .dtype = e->dtype,
							    .factor = e->factor};
	struct smalti_tile *means =
	    smalti_tile_upload(task_group, 1, arguments.count * smalti_dtype_bytes(e->dtype), e->means);
	const struct smalti_noised_latents latents =
	    smalti_noised_latents_insert(task_group, means, &arguments);
	smalti_tile_release(means);
	return latents;
}

/* Returns the denoiser's output for the latents, as planes. */
static struct smalti_tile *forward(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
				   const struct smalti_denoising_error *e, const struct smalti_tokens *tokens,
				   struct smalti_tile *xt)
{
	const struct smalti_denoiser_functions *functions = denoiser->functions;
	const struct smalti_latent_form in = {
	    tokens, e->height, e->width, denoiser->patch_size, denoiser->in_channels, false};
	const struct smalti_latent_form out = {
	    tokens, e->height, e->width, denoiser->patch_size, denoiser->out_channels, true};
	const float timestep = (float)e->timestep;
	struct smalti_grid v;
	struct smalti_conditions *conditions = functions->conditions(denoiser, task_group, tokens, &timestep,
								     1, e->height, e->width, e->vae_factor);
	struct smalti_grid x = smalti_latents_cut(task_group, &in, xt, 1);
	functions->forward(denoiser, task_group, conditions, 0, 1, &x, &e->cache, 1, NULL, &v);
	struct smalti_tile *planes = smalti_latents_join(task_group, &out, &v);
	smalti_grid_release(&x);
	smalti_grid_release(&v);
	functions->release_conditions(conditions);
	return planes;
}

void smalti_denoising_error_insert(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
				   const struct smalti_denoising_error *e, struct smalti_loss_parts *parts)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tokens tokens;
	if (smalti_tokens_cut(&tokens, &smalti_strategy_none, tokens_of(denoiser, e),
			      e->width / denoiser->patch_size, e->band_tokens, &error) < 0) {
		smalti_task_group_break(task_group, &error);
		return;
	}
	const struct diffusion_loss_arguments loss = {.has_variance =
							  denoiser->out_channels != denoiser->in_channels};
	const struct smalti_noised_latents latents = noised(denoiser, task_group, e);
	struct smalti_tile *output = forward(denoiser, task_group, e, &tokens, latents.xt);
	smalti_denoising_loss_insert(task_group, &latents, output, NULL, &loss, parts);
	smalti_tile_release(output);
	smalti_noised_latents_release(&latents);
	smalti_tokens_free(&tokens);
}
