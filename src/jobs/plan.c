/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/plan.h"
#include "graphs/strategy/choose.h"
#include "graphs/vae/plan.h"
#include "jobs/bins.h"
#include "jobs/plan_step_cache.h"
#include "jobs/plan_strategy.h"
#include "jobs/vae.h"
#include "rt/devices_alone.h"

#include <math.h>
#include <xxhash.h>

static int check_request(const struct smalti_request *r, struct smalti_error *error)
{
	if (smalti_check_range(r->width, SMALTI_SIDE_MIN, SMALTI_SIDE_MAX, "width", error) < 0 ||
	    smalti_check_range(r->height, SMALTI_SIDE_MIN, SMALTI_SIDE_MAX, "height", error) < 0 ||
	    smalti_check_range(r->steps, 1, SMALTI_STEPS_MAX, "steps", error) < 0 ||
	    smalti_check_range(r->images, 1, SMALTI_IMAGES_MAX, "images", error) < 0 ||
	    smalti_check_range(r->tile_tokens, 0, INT64_MAX, "tile-tokens", error) < 0 ||
	    smalti_check_range(r->tile_rows, 0, INT64_MAX, "tile-rows", error) < 0 ||
	    smalti_check_range(r->patches, 0, SMALTI_PATCHES_MAX, "patches", error) < 0 ||
	    smalti_check_range(r->warmup, 0, SMALTI_STEPS_MAX, "warmup", error) < 0 ||
	    smalti_check_range((int)r->cleaning, 0, SMALTI_CLEANING_STRIP, "cleaning", error) < 0 ||
	    smalti_check_range((int)r->noise, 0, SMALTI_NOISE_BF16, "noise", error) < 0 ||
	    smalti_check_range((int)r->grain, 0, SMALTI_GRAIN_PASS, "grain", error) < 0)
		return -1;
	if (!isfinite(r->guidance) || r->guidance < 0)
		return smalti_fail(error, SMALTI_EINVAL, "guidance: expected a number of 0 or more, found %g",
				   r->guidance);
	if (!(r->eta >= 0 && r->eta <= 1))
		return smalti_fail(error, SMALTI_EINVAL, "eta: expected a number from 0 to 1, found %g",
				   r->eta);
	return 0;
}

/* Reads the configuration of the scheduler that the request names. */
static int read_scheduler(const struct smalti_model *model, const struct smalti_request *request,
			  struct smalti_scheduler_config *config, struct smalti_error *error)
{
	const struct smalti_sampler_name *name = smalti_sampler_name_find(request->scheduler, error);
	if (!name ||
	    smalti_scheduler_config_read_as(model->scheduler_path, name->scheduler, config, error) < 0)
		return -1;
	if (name->steps && request->steps != name->steps)
		return smalti_fail(error, SMALTI_EINVAL,
				   "steps: expected %lld with the scheduler \"%s\", found %lld",
				   (long long)name->steps, name->name, (long long)request->steps);
	smalti_sampler_name_set(name, config);
	return 0;
}

/* Refuses a sampler whose first step is at timestep 0, where noise is not expected. */
static int check_first_step(const struct smalti_sampler *sampler, struct smalti_error *error)
{
	if (sampler->step[0].timestep > 0)
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "the scheduler puts the only step at timestep 0, where there is no noise; ask for 2 "
	    "steps or more, or another scheduler");
}

static int make_sampler(struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_model *model = plan->model;
	const struct smalti_request *request = &plan->request;
	struct smalti_scheduler_config config = model->scheduler;
	if (!request->scheduler && model->no_scheduler.code)
		return smalti_fail(
		    error, model->no_scheduler.code,
		    "%s; ask for another one, for instance \"dpm++\": --scheduler, or \"scheduler\" of a "
		    "request",
		    model->no_scheduler.message);
	if (request->scheduler && read_scheduler(model, request, &config, error) < 0)
		return -1;
	if (request->eta > 0 && config.scheduler != SMALTI_SCHEDULER_DDIM)
		return smalti_fail(error, SMALTI_EINVAL,
				   "eta %g is of the scheduler \"ddim\" alone; leave it out, or ask for that",
				   request->eta);
	config.eta = request->eta;
	config.strength = request->image ? request->strength : 0;
	config.repaints = request->mask;
	plan->sampler = smalti_sampler_new(&config, request->steps, error);
	if (!plan->sampler)
		return -1;
	return request->image ? 0 : check_first_step(plan->sampler, error);
}

static int check_latents(const struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_request *request = &plan->request;
	if (!request->latents)
		return 0;
	const int64_t channels = plan->model->denoiser->in_channels;
	const int64_t expected = request->images * channels * plan->latent_height * plan->latent_width;
	if (request->latents_count != expected)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "latents: expected [%lld, %lld, %lld, %lld] for an image of %lldx%lld, found %lld "
		    "values",
		    (long long)request->images, (long long)channels, (long long)plan->latent_height,
		    (long long)plan->latent_width, (long long)request->width, (long long)request->height,
		    (long long)request->latents_count);
	for (int64_t i = 0; i < expected; i++)
		if (!isfinite(request->latents[i]))
			return smalti_fail(error, SMALTI_EINVAL, "latents: value %lld is not finite",
					   (long long)i);
	return 0;
}

static int plan_bands(struct smalti_plan *plan, const struct smalti_vae_budget *budget,
		      struct smalti_error *error)
{
	return smalti_vae_net_plan(plan->model->vae, plan->latent_height, plan->latent_width,
				   plan->request.tile_rows, budget, &plan->decoding, error);
}

/* Returns what the VAE may take of the session's memory beside the weights. */
static struct smalti_vae_budget vae_budget(const struct smalti_model *model)
{
	enum { SMALL = 8 }; /* if so many images fit, none has to delay the others' tasks */
	struct smalti_vae_budget budget = smalti_vae_no_budget(model->session->planned_workers);
	if (!model->session->offloads) {
		budget.memory = smalti_memory_for_images(model);
		budget.at_once = budget.memory / SMALL;
	}
	return budget;
}

/* Plans the encoding of the image to begin with, likewise, in bands of the decoding's height. */
static int plan_encoding(struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_vae_budget budget = vae_budget(plan->model);
	struct smalti_error ignored = SMALTI_NO_ERROR;
	if (!plan->image)
		return 0;
	const int status =
	    smalti_vae_net_plan(plan->model->encoder, plan->latent_height, plan->latent_width,
				plan->request.tile_rows, &budget, &plan->image->encoding, &ignored);
	return status < 0 && !plan->image->encoding.storage ? smalti_pass(error, &ignored) : 0;
}

/* Plans decoding in the session's memory beside the weights. The rest goes to the session's scratch, or the
 * image is refused at admission. Bands of no requested height are lower if tall ones do not fit. */
static int plan_decoding(struct smalti_plan *plan, const struct smalti_model *model, bool asked,
			 struct smalti_error *error)
{
	const struct smalti_vae_budget budget = vae_budget(model);
	struct smalti_error ignored = SMALTI_NO_ERROR;
	int status = plan_bands(plan, &budget, &ignored);
	if (status < 0 && plan->request.tile_rows > SMALTI_TILE_ROWS && !asked) {
		plan->request.tile_rows = SMALTI_TILE_ROWS;
		smalti_vae_plan_free(&plan->decoding);
		status = plan_bands(plan, &budget, &ignored);
	}
	return status < 0 && !plan->decoding.storage ? smalti_pass(error, &ignored) : 0;
}

/* Spreads the bands of the decoding, and of an encoding, over the strategy's places. */
static int distribute_decoding(struct smalti_plan *plan, struct smalti_error *error)
{
	const int places = smalti_session_place_count(plan->model->session);
	if (plan->strategy.count == 0)
		return 0;
	SCOPED(free) double *shares = smalti_calloc(places, sizeof(*shares), error);
	if (!shares)
		return -1;
	smalti_strategy_shares(smalti_strategy_last(&plan->strategy), shares, places);
	if (plan->image &&
	    smalti_partition_distribute(&plan->image->encoding.partition, shares, places, error) < 0)
		return -1;
	return smalti_partition_distribute(&plan->decoding.partition, shares, places, error);
}

static void estimate_bytes(struct smalti_plan *plan, const struct smalti_model *model)
{
	const struct smalti_denoiser *d = model->denoiser;
	const int64_t tokens = plan->latent_height / d->patch_size * (plan->latent_width / d->patch_size);
	const int64_t denoising = d->functions->working_bytes(d, tokens, plan->request.tile_tokens,
							      plan->guided ? 2 : 1, &plan->strategy);
	const int64_t texts = plan->guided ? 2 : 1;
	const int64_t encoding =
	    model->text.model->functions->working_bytes(model->text.model, texts * model->text.max_tokens);
	plan->bytes = denoising > plan->decoding.memory ? denoising : plan->decoding.memory;
	plan->bytes = plan->bytes > encoding ? plan->bytes : encoding;
	if (plan->image) {
		plan->bytes = smalti_max(plan->bytes, plan->image->encoding.memory);
		plan->bytes += smalti_plan_image_bytes(plan);
	}
	plan->bytes += texts * d->functions->cross_cache_bytes(d, model->text.max_tokens);
	plan->bytes += smalti_step_cache_bytes(plan->step_cache.kind, tokens, d->width, (int)texts);
}

/* Chooses the bin. Like diffusers it goes by the transformer's sample size, in latents of 8 pixels. */
static int choose_bin(struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_model *model = plan->model;
	enum { PIXELS = 8 };
	const int64_t sample = model->denoiser->sample_size;
	struct smalti_bin bin;
	if (smalti_model_factor(model) != PIXELS)
		return smalti_fail(error, SMALTI_EINVAL,
				   "resolution bins: expected a VAE of %d pixels to a latent, found %lld",
				   PIXELS, (long long)smalti_model_factor(model));
	if (smalti_bins_nearest(sample * PIXELS, SMALTI_BINS_PIPELINE, plan->request.height,
				plan->request.width, &bin, error) < 0)
		return -1;
	plan->made_width = bin.width;
	plan->made_height = bin.height;
	return 0;
}

/* Returns the most tokens, a power of two, of which a task for one prompt fits every device. */
static int64_t max_tokens(const struct smalti_session *session, const struct smalti_denoiser *denoiser)
{
	int64_t tokens = SMALTI_GPU_TILE_TOKENS;
	while (tokens < SMALTI_SIDE_MAX &&
	       denoiser->functions->working_bytes(denoiser, 2 * tokens, 2 * tokens, 1,
						  &smalti_strategy_none) <= session->task_bytes)
		tokens *= 2;
	return tokens;
}

int64_t smalti_tile_tokens(const struct smalti_session *session, const struct smalti_denoiser *denoiser,
			   const char *shares)
{
	const bool cpus = shares && !smalti_is_auto(shares) && strtod(shares, NULL) > 0;
	if (!session || cpus || !smalti_devices_have(&session->device_counts, SMALTI_DEVICES_LARGE))
		return SMALTI_TILE_TOKENS;
	return smalti_devices_alone(session) ? max_tokens(session, denoiser) : SMALTI_GPU_TILE_TOKENS;
}

/* Writes the request with every default replaced by its value. */
static int set_defaults(struct smalti_plan *plan, const struct smalti_request *request,
			struct smalti_error *error)
{
	struct smalti_model_info info;
	struct smalti_request *r = &plan->request;
	smalti_model_info(plan->model, &info);
	*r = *request;
	r->width = r->width ? r->width : info.native_width;
	r->height = r->height ? r->height : info.native_height;
	if (check_request(r, error) < 0 || smalti_plan_image_check(r, error) < 0)
		return -1;
	r->tile_tokens = r->tile_tokens
			     ? r->tile_tokens
			     : smalti_tile_tokens(plan->model->session, plan->model->denoiser, r->shares);
	if (request->step_cache && !(plan->step_cache_text = smalti_format(error, "%s", request->step_cache)))
		return -1;
	r->step_cache = plan->step_cache_text;
	plan->prompt = smalti_format(error, "%s", request->prompt);
	plan->negative_prompt =
	    smalti_format(error, "%s", request->negative_prompt ? request->negative_prompt : "");
	r->prompt = plan->prompt;
	r->negative_prompt = plan->negative_prompt;
	return plan->prompt && plan->negative_prompt ? 0 : -1;
}

static int make_plan(struct smalti_plan *plan, const struct smalti_request *request,
		     struct smalti_error *error)
{
	const struct smalti_model *model = plan->model;
	const struct smalti_request *r = &plan->request;
	struct smalti_model_info info;
	if (set_defaults(plan, request, error) < 0)
		return -1;
	smalti_model_info(model, &info);
	plan->made_width = r->width;
	plan->made_height = r->height;
	plan->guided = r->guidance > 1;
	if (r->resolution_binning && choose_bin(plan, error) < 0)
		return -1;
	plan->latent_width = smalti_round_up(plan->made_width, info.size_multiple) / info.latent_pixels;
	plan->latent_height = smalti_round_up(plan->made_height, info.size_multiple) / info.latent_pixels;
	if (r->lora && !(plan->variant = smalti_variant_get(model, r->lora, error)))
		return -1;
	plan->request.lora = plan->variant ? plan->variant->lora : NULL;
	if (check_latents(plan, error) < 0 || smalti_plan_image_make(plan, error) < 0 ||
	    make_sampler(plan, error) < 0 || smalti_plan_strategy_read(plan, error) < 0 ||
	    smalti_plan_step_cache_read(plan, error) < 0)
		return -1;
	const int places = smalti_strategy_last(&plan->strategy)->count;
	if (!request->tile_rows)
		plan->request.tile_rows = places > 1
					      ? smalti_vae_shared_rows(plan->latent_height, places)
					      : smalti_vae_band_rows(model->session, model->vae,
								     plan->latent_height, plan->latent_width);
	if (plan_decoding(plan, model, request->tile_rows > 0, error) < 0 || plan_encoding(plan, error) < 0 ||
	    distribute_decoding(plan, error) < 0)
		return -1;
	estimate_bytes(plan, model);
	return 0;
}

void smalti_plan_latents(const struct smalti_plan *plan, int64_t shape[3])
{
	shape[0] = plan->model->denoiser->in_channels;
	shape[1] = plan->latent_height;
	shape[2] = plan->latent_width;
}

struct smalti_plan *smalti_request_resolve(const struct smalti_model *model, struct smalti_request *request,
					   struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(model, "model", error) < 0 ||
	    smalti_check_given(request, "request", error) < 0 ||
	    smalti_check_given(request->prompt, "prompt", error) < 0)
		return NULL;
	struct smalti_plan *plan = smalti_calloc(1, sizeof(*plan), error);
	if (!plan)
		return NULL;
	atomic_init(&plan->users, 1);
	plan->model = model;
	if (make_plan(plan, request, error) < 0) {
		smalti_plan_free(plan);
		return NULL;
	}
	request->width = plan->request.width;
	request->height = plan->request.height;
	request->strength = plan->request.strength;
	request->tile_tokens = plan->request.tile_tokens;
	request->tile_rows = plan->request.tile_rows;
	return plan;
}

struct smalti_denoiser *smalti_plan_denoiser(const struct smalti_plan *plan)
{
	return plan->variant ? plan->variant->denoiser : plan->model->denoiser;
}

const char *smalti_plan_lora(const struct smalti_plan *plan)
{
	return plan->variant ? plan->variant->digest : NULL;
}

uint64_t smalti_plan_digest(const struct smalti_plan *plan)
{
	const int64_t numbers[] = {plan->latent_width, plan->latent_height, plan->bytes};
	uint64_t digest = XXH64(numbers, sizeof(numbers), 0);
	for (const struct smalti_strategy *s = &plan->strategy; s; s = s->next) {
		digest = XXH64(s->place, (size_t)s->count * sizeof(*s->place), digest);
		digest = XXH64(s->share, (size_t)s->count * sizeof(*s->share), digest);
	}
	if (plan->variant)
		digest = XXH64(plan->variant->digest, SMALTI_DIGEST_LENGTH, digest);
	return digest ^ smalti_vae_plan_digest(&plan->decoding, plan->model->vae->count + 1);
}

struct smalti_plan *smalti_plan_share(struct smalti_plan *plan)
{
	atomic_fetch_add(&plan->users, 1);
	return plan;
}

void smalti_plan_free(struct smalti_plan *plan)
{
	if (!plan || atomic_fetch_sub(&plan->users, 1) > 1)
		return;
	smalti_variant_put(plan->model, plan->variant);
	free(plan->sampler);
	smalti_plan_image_free(plan->image);
	smalti_strategy_free(&plan->strategy);
	free(plan->step_cache_text);
	free(plan->step_cache_named);
	free(plan->step_table);
	free(plan->share_text);
	free(plan->strategy_text);
	smalti_vae_plan_free(&plan->decoding);
	free(plan->prompt);
	free(plan->negative_prompt);
	free(plan);
}

int64_t smalti_memory_for_images(const struct smalti_model *model)
{
	struct smalti_model_info info;
	smalti_model_info(model, &info);
	return model->session->memory - model->held_bytes - info.weight_bytes - smalti_variants_bytes(model) -
	       SMALTI_PROGRAM_BYTES;
}

int smalti_plan_check_memory(const struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_session *session = plan->model->session;
	const int64_t budget = smalti_memory_for_images(plan->model);
	if (plan->bytes <= budget || session->offloads)
		return 0;
	return smalti_fail(
	    error, SMALTI_ENOMEM,
	    "an image of %lldx%lld needs about %lld MB but %lld MB are allowed; raise the memory "
	    "limit, give a scratch directory, or make it smaller",
	    (long long)plan->request.width, (long long)plan->request.height,
	    (long long)((plan->bytes + session->memory - budget) >> 20), (long long)(session->memory >> 20));
}
