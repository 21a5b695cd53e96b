/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/diffusion.h"
#include "codelets/codelets.h"
#include "rt/session.h"
#include "samplers/noise.h"

/* A denoising under way. */
struct run {
	struct smalti_denoiser *denoiser;
	struct smalti_task_group *task_group;
	const struct smalti_diffusion *d;
	int64_t channels, patch, token_bytes;
	struct smalti_tile *generator;
	struct smalti_tokens tokens;
	struct smalti_grid x, history; /* history has no tiles when the sampler keeps none */
};

static int64_t plane_elements(const struct run *r)
{
	return r->channels * r->d->height * r->d->width;
}

static struct patchify_arguments band_of(const struct run *r, int64_t band, double scale)
{
	return (struct patchify_arguments){.channels = r->channels,
					   .height = r->d->height,
					   .width = r->d->width,
					   .patch = r->patch,
					   .first = r->tokens.partition.first[band],
					   .rows = smalti_partition_rows(&r->tokens.partition, band),
					   .scale = (float)scale};
}

static struct smalti_tile *draw_one(const struct run *r)
{
	struct smalti_tile *planes = smalti_tile_new(r->task_group, plane_elements(r), sizeof(float));
	smalti_insert(noise, r->task_group, (.generator = r->generator, .planes = planes),
		      .count = plane_elements(r), .dtype = r->d->noise_dtype);
	return planes;
}

static void skip_draws(const struct run *r, int64_t count)
{
	for (int64_t i = 0; i < count && !smalti_task_group_broken(r->task_group); i++)
		smalti_tile_release(draw_one(r));
}

/* This image's part of a draw for all images of the seed. */
static struct smalti_tile *draw_noise(const struct run *r)
{
	skip_draws(r, r->d->image);
	struct smalti_tile *planes = draw_one(r);
	skip_draws(r, r->d->images - 1 - r->d->image);
	return planes;
}

static void seed_generator(struct run *r)
{
	struct smalti_generator generator;
	smalti_generator_seed(&generator, r->d->seed);
	r->generator = smalti_tile_upload(r->task_group, 1, sizeof(generator), &generator);
}

/* The first latents as tokens, in bands. */
static void begin(struct run *r)
{
	const bool given = r->d->latents != NULL;
	struct smalti_tile *planes =
	    given ? smalti_tile_upload(r->task_group, plane_elements(r), sizeof(float), r->d->latents)
		  : draw_noise(r);
	const double scale = given ? 1.0 : r->d->sampler->initial_sigma;
	r->x = smalti_grid_new(r->task_group, &r->tokens.partition, 1, r->token_bytes);
	for (int64_t b = 0; b < r->tokens.partition.bands; b++) {
		const struct patchify_buffers buffers = {.planes = planes,
							 .tokens = smalti_grid_tile(&r->x, b)};
		const struct patchify_arguments arguments = band_of(r, b, scale);
		smalti_insert_patchify(r->task_group, &buffers, &arguments);
	}
	smalti_tile_release(planes);
}

static void begin_history(struct run *r)
{
	const int64_t arrays = r->d->sampler->history;
	if (!arrays)
		return;
	r->history = smalti_grid_new(r->task_group, &r->tokens.partition, 1, arrays * r->token_bytes);
	for (int64_t b = 0; b < r->tokens.partition.bands; b++)
		smalti_insert(clear, r->task_group, (.y = smalti_grid_tile(&r->history, b)),
			      .bytes =
				  smalti_partition_rows(&r->tokens.partition, b) * arrays * r->token_bytes);
}

/* x of every band one step further; v holds the outputs of the branches. */
static void advance(const struct run *r, const struct smalti_sampler_step *step, const struct smalti_grid *v)
{
	const bool guided = r->d->cache_count == 2;
	struct smalti_tile *noise = step->draws_noise ? draw_noise(r) : NULL;
	for (int64_t b = 0; b < r->tokens.partition.bands; b++)
		smalti_insert(sampler_step, r->task_group,
			      (.conditional = smalti_grid_tile(&v[guided ? 1 : 0], b),
			       .unconditional = guided ? smalti_grid_tile(&v[0], b) : NULL, .noise = noise,
			       .x = smalti_grid_tile(&r->x, b), .history = smalti_grid_tile(&r->history, b)),
			      .step = *step, .rows = smalti_partition_rows(&r->tokens.partition, b),
			      .channels = r->channels, .out_channels = r->denoiser->out_channels,
			      .patch = r->patch, .first = r->tokens.partition.first[b],
			      .height = r->d->height, .width = r->d->width, .guidance = r->d->guidance);
	smalti_tile_release(noise);
}

static struct smalti_conditions *conditions_of(const struct run *r)
{
	const struct smalti_sampler *sampler = r->d->sampler;
	struct smalti_error error = SMALTI_NO_ERROR;
	float *timesteps = smalti_calloc(sampler->steps, sizeof(*timesteps), &error);
	if (!timesteps) {
		smalti_task_group_break(r->task_group, &error);
		return NULL;
	}
	for (int64_t i = 0; i < sampler->steps; i++)
		timesteps[i] = (float)sampler->step[i].timestep;
	struct smalti_conditions *conditions =
	    r->denoiser->functions->conditions(r->denoiser, r->task_group, &r->tokens, timesteps,
					       sampler->steps, r->d->height, r->d->width, r->d->vae_factor);
	free(timesteps);
	return conditions;
}

static void denoise(struct run *r)
{
	const struct smalti_sampler *sampler = r->d->sampler;
	struct smalti_conditions *conditions = conditions_of(r);
	for (int64_t i = 0; i < sampler->steps && !smalti_task_group_broken(r->task_group); i++) {
		struct smalti_grid v[SMALTI_DENOISER_MAX_BRANCHES];
		smalti_task_group_stage(r->task_group, i + 1);
		r->denoiser->functions->forward(r->denoiser, r->task_group, conditions, i,
						(float)sampler->step[i].input_scale, &r->x, r->d->caches,
						r->d->cache_count, v);
		advance(r, &sampler->step[i], v);
		for (int k = 0; k < r->d->cache_count; k++)
			smalti_grid_release(&v[k]);
	}
	r->denoiser->functions->release_conditions(conditions);
}

/* The bands as planes again. */
static struct smalti_tile *finish(struct run *r)
{
	struct smalti_tile *planes = smalti_tile_new(r->task_group, plane_elements(r), sizeof(float));
	smalti_insert(clear, r->task_group, (.y = planes),
		      .bytes = plane_elements(r) * (int64_t)sizeof(float));
	for (int64_t b = 0; b < r->tokens.partition.bands; b++) {
		const struct unpatchify_buffers buffers = {.tokens = smalti_grid_tile(&r->x, b),
							   .planes = planes};
		const struct patchify_arguments arguments = band_of(r, b, 1.0);
		smalti_insert_unpatchify(r->task_group, &buffers, &arguments);
	}
	return planes;
}

struct smalti_tile *smalti_diffuse(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
				   const struct smalti_diffusion *diffusion)
{
	struct run r = {.denoiser = denoiser,
			.task_group = task_group,
			.d = diffusion,
			.channels = denoiser->in_channels,
			.patch = denoiser->patch_size};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tile *planes = NULL;
	r.token_bytes =
	    denoiser->in_channels * denoiser->patch_size * denoiser->patch_size * (int64_t)sizeof(float);
	const int64_t columns = diffusion->width / denoiser->patch_size;
	if (smalti_tokens_cut(&r.tokens, diffusion->strategy,
			      diffusion->height / denoiser->patch_size * columns, columns,
			      diffusion->band_tokens, &error) < 0) {
		smalti_task_group_break(task_group, &error);
	} else {
		seed_generator(&r);
		begin(&r);
		begin_history(&r);
		denoise(&r);
		planes = finish(&r);
		smalti_grid_release(&r.x);
		smalti_grid_release(&r.history);
		smalti_tile_release(r.generator);
		smalti_tokens_free(&r.tokens);
	}
	return planes;
}
