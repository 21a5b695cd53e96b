/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/model.h"
#include "checkpoint/pipeline_directory.h"
#include "graphs/pixart/dit.h"
#include "jobs/adapters.h"
#include "jobs/precision.h"
#include "jobs/prompt_encoder.h"
#include "jobs/unused.h"
#include "jobs/vae.h"
#include "ranks/ranks.h"
#include "samplers/sampler.h"

#include <xxhash.h>

void smalti_model_defaults(struct smalti_model_options *options)
{
	*options = (struct smalti_model_options){0};
}

/* The parts of a model: the components' directories or files, then files in these. */
enum { INDEX, TOKENIZER, TEXT_ENCODER, TRANSFORMER, VAE, SCHEDULER, COMPONENTS };
enum { TOKENIZER_FILE = COMPONENTS, TEXT_FILE, TRANSFORMER_FILE, VAE_FILE, SCHEDULER_FILE, PATHS };

static const struct {
	int of;
	const char *name;
} files[PATHS] = {
    [TOKENIZER_FILE] = {TOKENIZER, "tokenizer_config.json"}, [TEXT_FILE] = {TEXT_ENCODER, "config.json"},
    [TRANSFORMER_FILE] = {TRANSFORMER, "config.json"},       [VAE_FILE] = {VAE, "config.json"},
    [SCHEDULER_FILE] = {SCHEDULER, "scheduler_config.json"},
};

char *smalti_model_component(const char *given, const char *directory, const char *name,
			     struct smalti_error *error)
{
	return given ? smalti_format(error, "%s", given) : smalti_format(error, "%s/%s", directory, name);
}

static const char *directory_of(const struct smalti_model_options *o, struct smalti_error *error)
{
	return o->directory ? o->directory : smalti_embedded_model(error);
}

static int find_paths(char *paths[PATHS], const struct smalti_model_options *o, struct smalti_error *error)
{
	static const char *const names[] = {"model_index.json", "tokenizer", "text_encoder",
					    "transformer",      "vae",       "scheduler"};
	const char *const given[] = {NULL,           o->tokenizer, o->text_encoder,
				     o->transformer, o->vae,       o->scheduler};
	const char *directory = directory_of(o, error);
	bool all = directory;
	for (int i = 0; i < PATHS && all; i++) {
		paths[i] = i < COMPONENTS ? smalti_model_component(given[i], directory, names[i], error)
					  : smalti_format(error, "%s/%s", paths[files[i].of], files[i].name);
		all = paths[i];
	}
	return all ? 0 : -1;
}

static int open_transformer_files(struct smalti_model *model, char *const *paths, const char *variant,
				  struct smalti_error *error)
{
	if (smalti_component_check(paths[TRANSFORMER], error) < 0)
		return -1;
	model->dit_checkpoint =
	    smalti_checkpoint_open(paths[TRANSFORMER], SMALTI_STEM_DIFFUSERS, variant, error);
	if (model->dit_checkpoint)
		model->dit_checkpoint->wants_w8a8 = smalti_precision_is_w8a8(model->precision);
	return model->dit_checkpoint
		   ? smalti_transformer_config_open(paths[TRANSFORMER], model->dit_checkpoint,
						    &model->transformer, error)
		   : -1;
}

/* Reads the adapters. Those of the text encoder are merged into its weights. */
static int open_adapters(struct smalti_model *model, const struct smalti_model_options *o,
			 struct smalti_error *error)
{
	model->variants = smalti_variants_new(error);
	if (!model->variants)
		return -1;
	if (o->lora_count == 0)
		return 0;
	model->adapters =
	    smalti_adapters_open(o->loras, o->lora_count, &model->text.config, &model->transformer, error);
	if (!model->adapters)
		return -1;
	if (model->text.known && smalti_adapter_set_find(model->adapters, SMALTI_TEXT_ENCODER, false))
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: it changes the text encoder, whose features are given",
				   o->loras[0].path);
	model->text.checkpoint->adapters = model->adapters;
	return 0;
}

static int open_transformer(struct smalti_model *model, struct smalti_error *error)
{
	model->denoiser = smalti_dit_new(model->task_group, &model->transformer, model->dit_checkpoint,
					 smalti_precision_dtype(model->precision), error);
	return model->denoiser ? 0 : -1;
}

static int open_vae(struct smalti_model *model, char *const *paths, const char *variant,
		    struct smalti_error *error)
{
	struct smalti_vae_config config;
	model->vae_checkpoint = smalti_vae_read(paths[VAE], variant, &config, error);
	if (!model->vae_checkpoint)
		return -1;
	model->vae = smalti_vae_net_new(SMALTI_VAE_DECODE, model->task_group, &config, model->vae_checkpoint,
					smalti_precision_vae_dtype(model->precision, &config), error);
	if (!model->vae)
		return -1;
	model->encoder = smalti_vae_net_new(SMALTI_VAE_ENCODE, model->task_group, &config,
					    model->vae_checkpoint, model->vae->compute, &model->no_encoder);
	return 0;
}

/* Fits weights into half of the memory left for them and the images. Packed ones else stay as the file has
 * them; the text encoder's are else given back behind their readers. *raw: whether the transformer's stay. */
static void fit_into_memory(struct smalti_model *model, bool *raw)
{
	struct smalti_text_encoder *text = model->text.model;
	const int64_t room = model->session->memory - SMALTI_PROGRAM_BYTES - model->held_bytes;
	const bool streams = smalti_weights_bytes(text->weights) > room / 2;
	if (streams)
		text->functions->stream(text);
	int64_t left = room - smalti_weights_bytes(text->weights) - smalti_weights_bytes(model->vae->weights);
	*raw = smalti_weights_bytes(model->denoiser->weights) > left / 2;
	if (*raw) {
		smalti_weights_leave_raw(model->denoiser->weights);
		model->mapped_bytes += smalti_weights_file_bytes(model->denoiser->weights);
	}
	if (!model->session->memory_limit) {
		/* The kernel takes pages of files back as it likes. */
		model->mapped_bytes = streams ? text->functions->mapped_bytes(text) : 0;
		return;
	}
	left -= smalti_weights_bytes(model->denoiser->weights) + model->mapped_bytes;
	if (text->functions->mapped_bytes(text) > left / 2)
		text->functions->stream(text);
	model->mapped_bytes += text->functions->mapped_bytes(text);
}

/* Gives the transformer its adapters: beside weights in 8 bits, which would round them away, and beside those
 * of the mapped file, which would be made in memory; else, and always those of DoRA, merged. */
static int use_adapters(struct smalti_model *model, bool raw, struct smalti_error *error)
{
	struct smalti_denoiser *plain = model->denoiser;
	if (!model->adapters || !smalti_adapter_set_find(model->adapters, SMALTI_TRANSFORMER, false))
		return 0;
	if ((raw || smalti_weights_have_rows8(plain->weights)) &&
	    !smalti_adapter_set_find(model->adapters, SMALTI_TRANSFORMER, true)) {
		model->base = plain;
		model->denoiser = plain->functions->adapted(plain, model->task_group, model->adapters, error);
		return model->denoiser ? 0 : -1;
	}
	smalti_denoiser_free(plain);
	model->dit_checkpoint->adapters = model->adapters;
	if (open_transformer(model, error) < 0)
		return -1;
	if (raw)
		smalti_weights_leave_raw(model->denoiser->weights);
	return 0;
}

static int make_digest(struct smalti_model *model, char *const *paths, struct smalti_error *error)
{
	SCOPED(free) char *pieces = smalti_tokenizer_file(paths[TOKENIZER], error);
	const char *const texts[] = {paths[INDEX],         paths[TOKENIZER_FILE],   pieces,
				     paths[TEXT_FILE],     paths[TRANSFORMER_FILE], paths[VAE_FILE],
				     paths[SCHEDULER_FILE]};
	const struct smalti_checkpoint *const weights[] = {model->text.checkpoint, model->dit_checkpoint,
							   model->vae_checkpoint};
	if (!pieces ||
	    smalti_digest(texts, COUNT_OF(texts), weights, COUNT_OF(weights), model->digest, error) < 0)
		return -1;
	return model->adapters ? smalti_adapters_digest(model->adapters, model->digest, error) : 0;
}

static int look_for_unused(struct smalti_model *model, struct smalti_error *error)
{
	struct smalti_error *note = &model->unused;
	if (smalti_unused_tensors(model->text.checkpoint, SMALTI_TEXT_ENCODER, &model->text.config, note,
				  error) ||
	    smalti_unused_tensors(model->dit_checkpoint, SMALTI_TRANSFORMER, &model->transformer, note,
				  error))
		return -1;
	for (int i = 0; model->adapters && i < model->adapters->count; i++)
		smalti_unused_say(note, &model->adapters->uses[i].adapter->note);
	return smalti_unused_tensors(model->vae_checkpoint, SMALTI_VAE, &model->vae->config, note, error);
}

static int open_parts(struct smalti_model *model, char *const *paths, const struct smalti_model_options *o,
		      struct smalti_error *error)
{
	struct smalti_model_index index;
	model->precision = o->precision;
	if (smalti_pipeline_check(directory_of(o, error), error) < 0 ||
	    smalti_model_index_read(paths[INDEX], &index, error) < 0)
		return -1;
	model->text.max_tokens = smalti_pipeline_tokens(index.pipeline);
	/* A given scheduler directory has its class in the file; otherwise diffusers follows the index. */
	const char *class = !o->scheduler && index.scheduler[0] ? index.scheduler : NULL;
	model->scheduler_path = smalti_format(error, "%s", paths[SCHEDULER_FILE]);
	model->step_cache_path =
	    smalti_model_component(o->step_cache_table, directory_of(o, error), "step_cache.json", error);
	if (!model->scheduler_path || !model->step_cache_path ||
	    smalti_component_check(paths[SCHEDULER], error) < 0 ||
	    smalti_scheduler_config_read(paths[SCHEDULER_FILE], class, &model->scheduler,
					 &model->no_scheduler, error) < 0)
		return -1;
	if (smalti_prompt_encoder_open_files(&model->text, paths[TOKENIZER], paths[TEXT_ENCODER], o, error) <
		0 ||
	    open_transformer_files(model, paths, o->variant, error) < 0 ||
	    open_adapters(model, o, error) < 0 ||
	    smalti_prompt_encoder_open_model(&model->text, model->task_group, o, error) < 0 ||
	    open_transformer(model, error) < 0 || open_vae(model, paths, o->variant, error) < 0)
		return -1;
	if (smalti_model_check(&index, &model->transformer, &model->vae->config, &model->text.config, error) <
	    0)
		return -1;
	const bool whole = !o->text_encoder && !o->transformer; /* the words belong to both */
	if (whole && smalti_words_read(directory_of(o, error), &model->words, error) < 0)
		return -1;
	if (look_for_unused(model, error) < 0)
		return -1;
	bool raw;
	fit_into_memory(model, &raw);
	return use_adapters(model, raw, error) < 0 ? -1 : make_digest(model, paths, error);
}

struct smalti_model *smalti_model_open(struct smalti_session *session,
				       const struct smalti_model_options *options, struct smalti_error *error)
{
	static const struct smalti_model_company alone;
	return smalti_model_open_beside(session, options, &alone, error);
}

struct smalti_model *smalti_model_open_beside(struct smalti_session *session,
					      const struct smalti_model_options *options,
					      const struct smalti_model_company *company,
					      struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_model_options defaults;
	smalti_model_defaults(&defaults);
	options = options ? options : &defaults;
	if (smalti_check_given(session, "session", error) < 0 ||
	    smalti_check_range((int)options->text_encoder_precision, 0, SMALTI_TEXT_ENCODER_W8A8,
			       "precision of the text encoder", error) < 0 ||
	    smalti_precision_choose(smalti_precision_of_rest(options->precision), session, error) < 0)
		return NULL;
	struct smalti_model *model = smalti_calloc(1, sizeof(*model), error);
	if (!model)
		return NULL;
	char *paths[PATHS] = {NULL};
	model->session = session;
	model->held_bytes = company->held_bytes;
	model->text.known = company->texts.count ? &company->texts : NULL;
	model->task_group = smalti_task_group_new(session, "weights", INT64_MAX, error);
	const int status = model->task_group && find_paths(paths, options, error) == 0
			       ? open_parts(model, paths, options, error)
			       : -1;
	for (int i = 0; i < PATHS; i++)
		free(paths[i]);
	struct smalti_ranks_vote vote = {
	    .digest = XXH64(model->digest, sizeof(model->digest), (uint64_t)model->precision)};
	if (smalti_ranks_agree(status, &vote, error) == 0)
		return model;
	smalti_model_close(model);
	return NULL;
}

void smalti_model_close(struct smalti_model *model)
{
	if (!model)
		return;
	if (model->task_group)
		smalti_task_group_wait(model->task_group); /* its tasks read the mapped files */
	smalti_vae_net_free(model->vae);
	smalti_variants_free(model->variants);
	smalti_vae_net_free(model->encoder);
	smalti_denoiser_free(model->denoiser);
	smalti_denoiser_free(model->base);
	smalti_prompt_encoder_close(&model->text);
	smalti_task_group_free(model->task_group);
	smalti_checkpoint_close(model->vae_checkpoint);
	smalti_checkpoint_close(model->dit_checkpoint);
	smalti_adapter_set_free(model->adapters);
	free(model->words);
	free(model->scheduler_path);
	free(model->step_cache_path);
	free(model);
}

int64_t smalti_model_factor(const struct smalti_model *model)
{
	return smalti_vae_factor(&model->vae->config);
}

void smalti_model_info(const struct smalti_model *model, struct smalti_model_info *info)
{
	const struct smalti_denoiser *denoiser = model->denoiser;
	const int64_t factor = smalti_model_factor(model);
	info->native_width = info->native_height = denoiser->sample_size * factor;
	info->size_multiple = denoiser->patch_size * factor;
	info->max_tokens = model->text.max_tokens;
	info->latent_channels = denoiser->in_channels;
	info->latent_pixels = factor;
	info->scheduler = model->no_scheduler.code ? NULL : smalti_sampler_name_of(&model->scheduler);
	info->digest = model->digest;
	info->unused = model->unused.code ? model->unused.message : NULL;
	info->weight_bytes = smalti_weights_bytes(model->text.model->weights) +
			     smalti_weights_bytes(model->denoiser->weights) +
			     smalti_weights_bytes(model->vae->weights) + model->mapped_bytes;
}

int smalti_prompt_unread(const struct smalti_model *model, const char *prompt, enum smalti_cleaning cleaning,
			 struct smalti_unread *unread, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(model, "model", error) < 0 ||
	    smalti_check_given(prompt, "prompt", error) < 0 ||
	    smalti_check_given(unread, "unread", error) < 0 ||
	    smalti_check_range((int)cleaning, 0, SMALTI_CLEANING_STRIP, "cleaning", error) < 0)
		return -1;
	return smalti_unread_of(&model->text, model->words, prompt, cleaning, unread, error);
}
