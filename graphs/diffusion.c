/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/diffusion.h"
#include "codelets/codelets.h"
#include "graphs/latent_tokens.h"
#include "rt/session.h"
#include "samplers/noise.h"

/* How the tokens of a pass are cut. */
struct layout {
	struct smalti_strategy strategy; /* owns nothing */
	struct smalti_tokens tokens;
	struct smalti_conditions *conditions;
};

/* A denoising under way. */
struct run {
	struct smalti_denoiser *denoiser;
	struct smalti_task_group *task_group;
	const struct smalti_diffusion *d;
	int64_t patch, token_bytes;
	struct smalti_tile *generator;
	struct layout *layout; /* of each kind of pass */
	int layouts;
	const struct layout *now;                 /* the layout of x and history */
	struct smalti_step_cache *step_cache;     /* NULL: none */
	struct smalti_grid x, history;            /* history has no tiles when the sampler keeps none */
	struct smalti_tile *clean, *noise, *mask; /* planes of what is put back; NULL: nothing */
};

static int64_t plane_elements(const struct run *r)
{
	return r->denoiser->in_channels * r->d->height * r->d->width;
}

static const struct smalti_partition *bands_of(const struct run *r)
{
	return &r->now->tokens.partition;
}

/* Returns the form of `arrays` arrays of latents, which lie together in each token. */
static struct smalti_latent_form form_of(const struct run *r, const struct layout *layout, int64_t arrays)
{
	return (struct smalti_latent_form){
	    &layout->tokens, r->d->height, r->d->width, r->patch, arrays * r->denoiser->in_channels, false};
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

/* Draws the noise of all images, and returns this one's. */
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

/* Uploads the inverses and the shifts of the channels' scales. */
static struct smalti_tile *upload_scale(const struct run *r, const struct smalti_vae_config *vae)
{
	enum { MOST = SMALTI_VAE_MAX_LATENT_CHANNELS };
	float scale[2 * MOST];
	const int64_t channels = smalti_min(r->denoiser->in_channels, MOST);
	for (int64_t c = 0; c < channels; c++) {
		const struct smalti_latent_scale of = smalti_vae_latent_scale(vae, c);
		scale[c] = (float)of.inverse;
		scale[channels + c] = (float)of.shift;
	}
	return smalti_tile_upload(r->task_group, 2 * channels, sizeof(*scale), scale);
}

/* Makes the latents of the image. */
static struct smalti_tile *draw_latents(const struct run *r, const struct smalti_diffusion_image *start)
{
	struct smalti_tile *noise = start->draws ? draw_noise(r) : NULL;
	struct smalti_tile *scale = upload_scale(r, start->vae);
	struct smalti_tile *y = smalti_tile_new(r->task_group, plane_elements(r), sizeof(float));
	smalti_insert(draw_latents, r->task_group,
		      (.moments = start->moments, .scale = scale, .noise = noise, .y = y),
		      .channels = r->denoiser->in_channels, .plane = r->d->height * r->d->width);
	smalti_tile_release(noise);
	smalti_tile_release(scale);
	return y;
}

/* Makes the first latents from an image, and keeps what is put back. */
static struct smalti_tile *begin_with_image(struct run *r)
{
	const struct smalti_diffusion_image *start = r->d->start;
	struct smalti_sampler_level level = r->d->sampler->start;
	if (start->from_noise)
		level = (struct smalti_sampler_level){0, r->d->sampler->initial_sigma};
	r->clean = draw_latents(r, start);
	r->noise = draw_noise(r);
	if (start->mask)
		r->mask = smalti_tile_upload(r->task_group, plane_elements(r), sizeof(float), start->mask);
	struct smalti_tile *planes = smalti_tile_new(r->task_group, plane_elements(r), sizeof(float));
	smalti_insert(add_noise, r->task_group, (.x = r->clean, .noise = r->noise, .y = planes),
		      .count = plane_elements(r), .level = level);
	return planes;
}

/* Makes the first latents, as tokens in bands. */
static void begin(struct run *r)
{
	const bool noise = !r->d->latents && !r->d->start;
	struct smalti_tile *planes = r->d->start     ? begin_with_image(r)
				     : r->d->latents ? smalti_tile_upload(r->task_group, plane_elements(r),
									  sizeof(float), r->d->latents)
						     : draw_noise(r);
	const double scale = noise ? r->d->sampler->initial_sigma : 1.0;
	const struct smalti_latent_form form = form_of(r, r->now, 1);
	r->x = smalti_latents_cut(r->task_group, &form, planes, scale);
	smalti_tile_release(planes);
}

static void begin_history(struct run *r)
{
	const int64_t arrays = r->d->sampler->history;
	if (!arrays)
		return;
	r->history = smalti_grid_new(r->task_group, bands_of(r), 1, arrays * r->token_bytes);
	for (int64_t b = 0; b < bands_of(r)->bands; b++)
		smalti_insert(clear, r->task_group, (.y = smalti_grid_tile(&r->history, b)),
			      .bytes = smalti_partition_rows(bands_of(r), b) * arrays * r->token_bytes);
}

/* Moves x one step on in every band; v holds the outputs of the branches. */
static void advance(const struct run *r, const struct smalti_sampler_step *step, const struct smalti_grid *v)
{
	const bool guided = r->d->cache_count == 2;
	const struct smalti_latent_form form = form_of(r, r->now, 1);
	struct smalti_tile *noise = step->draws_noise ? draw_noise(r) : NULL;
	for (int64_t b = 0; b < bands_of(r)->bands; b++) {
		const struct patchify_arguments at = smalti_latent_band(&form, b, 1);
		smalti_insert(sampler_step, r->task_group,
			      (.conditional = smalti_grid_tile(&v[guided ? 1 : 0], b),
			       .unconditional = guided ? smalti_grid_tile(&v[0], b) : NULL, .noise = noise,
			       .x = smalti_grid_tile(&r->x, b), .history = smalti_grid_tile(&r->history, b)),
			      .step = *step, .rows = at.rows, .channels = at.channels,
			      .out_channels = r->denoiser->out_channels, .patch = at.patch, .left = at.left,
			      .columns = at.columns, .first = at.first, .height = at.height,
			      .width = at.width, .guidance = r->d->guidance);
	}
	smalti_tile_release(noise);
}

/* Puts the image back where the mask keeps it. */
static void repaint(const struct run *r, struct smalti_sampler_level level)
{
	const struct smalti_latent_form form = form_of(r, r->now, 1);
	for (int64_t b = 0; b < bands_of(r)->bands; b++) {
		const struct patchify_arguments at = smalti_latent_band(&form, b, 1);
		smalti_insert(
		    repaint, r->task_group,
		    (.clean = r->clean, .noise = r->noise, .mask = r->mask, .x = smalti_grid_tile(&r->x, b)),
		    .rows = at.rows, .channels = at.channels, .patch = at.patch, .left = at.left,
		    .columns = at.columns, .first = at.first, .height = at.height, .width = at.width,
		    .level = level);
	}
}

static struct smalti_conditions *conditions_of(const struct run *r, const struct smalti_tokens *tokens)
{
	const struct smalti_sampler *sampler = r->d->sampler;
	float *timesteps = smalti_task_group_calloc(r->task_group, sampler->steps, sizeof(*timesteps));
	if (!timesteps)
		return NULL;
	for (int64_t i = 0; i < sampler->steps; i++)
		timesteps[i] = (float)sampler->step[i].timestep;
	struct smalti_conditions *conditions =
	    r->denoiser->functions->conditions(r->denoiser, r->task_group, tokens, timesteps, sampler->steps,
					       r->d->height, r->d->width, r->d->vae_factor);
	free(timesteps);
	return conditions;
}

/* Moves tokens to another layout. */
static void lay_out(const struct run *r, const struct layout *layout, int64_t arrays,
		    struct smalti_grid *tokens)
{
	const struct smalti_latent_form from = form_of(r, r->now, arrays), to = form_of(r, layout, arrays);
	struct smalti_tile *planes = smalti_latents_join(r->task_group, &from, tokens);
	smalti_tile_set_transfer_kind(planes, SMALTI_TRANSFER_STREAM);
	smalti_grid_release(tokens);
	*tokens = smalti_latents_cut(r->task_group, &to, planes, 1.0);
	smalti_tile_release(planes);
}

/* Moves what stays between passes to the layout of this pass. */
static void settle(struct run *r, const struct layout *layout)
{
	if (layout == r->now)
		return;
	lay_out(r, layout, 1, &r->x);
	if (r->d->sampler->history)
		lay_out(r, layout, r->d->sampler->history, &r->history);
	r->now = layout;
}

/* Computes the outputs of the branches for x. */
static void forward(const struct run *r, int64_t pass, struct smalti_grid *v)
{
	r->denoiser->functions->forward(r->denoiser, r->task_group, r->now->conditions, pass,
					(float)r->d->sampler->step[pass].input_scale, &r->x, r->d->caches,
					r->d->cache_count, r->step_cache, v);
}

static void open_step_cache(struct run *r)
{
	const struct smalti_diffusion_cache *of = r->d->step_cache;
	const struct smalti_denoiser *d = r->denoiser;
	if (!of || smalti_task_group_broken(r->task_group))
		return;
	const struct smalti_step_cache_arguments arguments = {.rule = of->rule,
							      .bands = bands_of(r),
							      .steps = r->d->sampler->steps,
							      .width = d->width,
							      .branches = r->d->cache_count,
							      .output = r->patch * r->patch * d->out_channels,
							      .channels = d->out_channels,
							      .noises = d->in_channels,
							      .wait = of->wait,
							      .user = of->user};
	r->step_cache = smalti_step_cache_new(r->task_group, &arguments);
}

static void close_step_cache(struct run *r)
{
	const struct smalti_diffusion_cache *of = r->d->step_cache;
	if (!r->step_cache)
		return;
	smalti_step_cache_settle(r->step_cache);
	const struct smalti_step_report report = {.steps = r->d->sampler->steps,
						  .branches = r->d->cache_count,
						  .calls = smalti_step_cache_calls(r->step_cache),
						  .ratios = of->rule.kind == SMALTI_STEP_CACHE_CALIBRATION
								? smalti_step_cache_measured(r->step_cache)
								: NULL};
	if (of->report && !smalti_task_group_failed(r->task_group))
		of->report(of->user, &report);
	smalti_step_cache_free(r->step_cache);
}

static void denoise(struct run *r)
{
	const struct smalti_sampler *sampler = r->d->sampler;
	for (int i = 0; i < r->layouts; i++)
		r->layout[i].conditions = conditions_of(r, &r->layout[i].tokens);
	open_step_cache(r);
	for (int64_t i = 0; i < sampler->steps && !smalti_task_group_broken(r->task_group); i++) {
		struct smalti_grid v[SMALTI_DENOISER_MAX_BRANCHES];
		smalti_task_group_stage(r->task_group, i + 1);
		settle(r, &r->layout[smalti_strategy_kind(r->d->strategy, i)]);
		forward(r, i, v);
		advance(r, &sampler->step[i], v);
		if (r->mask)
			repaint(r, sampler->step[i].level);
		for (int k = 0; k < r->d->cache_count; k++)
			smalti_grid_release(&v[k]);
	}
	close_step_cache(r);
	for (int i = 0; i < r->layouts; i++)
		r->denoiser->functions->release_conditions(r->layout[i].conditions);
}

static struct smalti_tile *finish(struct run *r)
{
	for (int64_t b = 0; b < bands_of(r)->bands; b++)
		smalti_tile_set_transfer_kind(smalti_grid_tile(&r->x, b),
					      SMALTI_TRANSFER_OTHER); /* behind the last pass */
	const struct smalti_latent_form form = form_of(r, r->now, 1);
	return smalti_latents_join(r->task_group, &form, &r->x);
}

static int cut_layout(const struct run *r, int64_t pass, struct layout *layout, struct smalti_error *error)
{
	const int64_t columns = r->d->width / r->patch, rows = r->d->height / r->patch;
	layout->strategy = smalti_strategy_of_pass(r->d->strategy, pass);
	return smalti_tokens_cut(&layout->tokens, &layout->strategy, rows * columns, columns,
				 r->d->band_tokens, error);
}

static int cut_layouts(struct run *r, struct smalti_error *error)
{
	const int64_t steps = r->d->sampler->steps;
	r->now = r->layout = smalti_calloc(steps, sizeof(*r->layout), error);
	if (!r->layout)
		return -1;
	for (int64_t pass = 0; pass < steps; pass++) /* each kind of pass when it first occurs */
		if (smalti_strategy_kind(r->d->strategy, pass) == r->layouts &&
		    cut_layout(r, pass, &r->layout[r->layouts++], error) < 0)
			return -1;
	return 0;
}

struct smalti_tile *smalti_diffuse(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
				   const struct smalti_diffusion *diffusion)
{
	struct run r = {
	    .denoiser = denoiser, .task_group = task_group, .d = diffusion, .patch = denoiser->patch_size};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tile *planes = NULL;
	r.token_bytes = denoiser->in_channels * r.patch * r.patch * (int64_t)sizeof(float);
	if (cut_layouts(&r, &error) < 0) {
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
		smalti_tile_release(r.clean);
		smalti_tile_release(r.noise);
		smalti_tile_release(r.mask);
	}
	for (int i = 0; i < r.layouts; i++)
		smalti_tokens_free(&r.layout[i].tokens);
	free(r.layout);
	return planes;
}
