/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/parts.h"
#include "base/file.h"
#include "checkpoint/pipeline_directory.h"
#include "jobs/model.h"
#include "jobs/precision.h"
#include "jobs/unused.h"
#include "rt/session.h"
#include "store/directory.h"

static int read_max_tokens(const char *directory, const char *path, int64_t *tokens,
			   struct smalti_error *error)
{
	struct smalti_model_index index;
	const int found =
	    smalti_pipeline_directory_check(directory, error) < 0 ? -1 : smalti_find_file(path, error);
	if (found < 0)
		return -1;
	if (found == 0)
		return smalti_fail(
		    error, SMALTI_EIO,
		    "%s: is not there, and no text encoder alone says how many tokens a "
		    "caption may have: give a whole pipeline's directory, or --max-tokens (300 "
		    "for PixArt-Sigma, 120 for -alpha) and the directories of a tokenizer and a "
		    "text encoder",
		    path);
	if (smalti_model_index_read(path, &index, error) < 0)
		return -1;
	*tokens = smalti_pipeline_tokens(index.pipeline);
	return 0;
}

static int find_max_tokens(struct smalti_extract_parts *parts, const char *directory,
			   struct smalti_error *error)
{
	int64_t *tokens = &parts->options.max_tokens;
	int status = 0;
	if (*tokens == 0) {
		SCOPED(free) char *path = smalti_format(error, "%s/model_index.json", directory);
		status = path ? read_max_tokens(directory, path, tokens, error) : -1;
	}
	parts->text.max_tokens = *tokens;
	return status;
}

static int open_text(struct smalti_extract_parts *parts, struct smalti_error *error)
{
	const struct smalti_model_options *o = &parts->options.model;
	const char *directory = o->directory ? o->directory : smalti_embedded_model(error);
	if (!directory || find_max_tokens(parts, directory, error) < 0)
		return -1;
	SCOPED(free) char *tokenizer = smalti_model_component(o->tokenizer, directory, "tokenizer", error);
	SCOPED(free)
	char *encoder = smalti_model_component(o->text_encoder, directory, "text_encoder", error);
	return tokenizer && encoder &&
		       smalti_prompt_encoder_open(&parts->text, parts->weights, tokenizer, encoder, o,
						  error) == 0
		   ? smalti_prompt_encoder_digest(&parts->text, tokenizer, encoder, parts->text_digest, error)
		   : -1;
}

static int open_vae(struct smalti_extract_parts *parts, struct smalti_error *error)
{
	const struct smalti_model_options *o = &parts->options.model;
	const struct smalti_vae_options options = {
	    .directory = o->vae ? o->vae : o->directory, .variant = o->variant, .precision = o->precision};
	parts->vae = smalti_vae_open(parts->session, &options, error);
	if (!parts->vae || !smalti_vae_open_net(parts->vae, SMALTI_VAE_ENCODE, error))
		return -1;
	return smalti_vae_digest(parts->vae, parts->vae_digest, error);
}

static int look_for_unused(struct smalti_extract_parts *parts, struct smalti_error *error)
{
	const struct smalti_prompt_encoder *text = &parts->text;
	const struct smalti_vae *vae = parts->vae;
	if (text->model && smalti_unused_tensors(text->checkpoint, SMALTI_TEXT_ENCODER, &text->config,
						 &parts->unused, error) < 0)
		return -1;
	return vae ? smalti_unused_tensors(vae->checkpoint, SMALTI_VAE, &vae->config, &parts->unused, error)
		   : 0;
}

/* Streams a text encoder that leaves no room for its own tasks. */
static void fit_into_memory(struct smalti_extract_parts *parts)
{
	struct smalti_text_encoder *text = parts->text.model;
	if (!text)
		return;
	int64_t bytes = smalti_weights_bytes(text->weights);
	if (parts->session->memory_limit)
		bytes += text->functions->mapped_bytes(text);
	if (bytes > parts->session->memory / 2)
		text->functions->stream(text);
}

/* Returns the bytes of main memory that may be held beside the weights and the program. */
static int64_t main_memory(const struct smalti_extract_parts *parts)
{
	int64_t left = parts->session->memory - SMALTI_PROGRAM_BYTES;
	if (parts->text.model)
		left -= smalti_weights_bytes(parts->text.model->weights);
	if (parts->text.model && parts->session->memory_limit)
		left -= parts->text.model->functions->mapped_bytes(parts->text.model);
	if (parts->vae)
		left -= smalti_weights_bytes(parts->vae->net[SMALTI_VAE_ENCODE]->weights);
	return left;
}

static void choose_sizes(struct smalti_extract_parts *parts)
{
	const struct smalti_text_encoder *text = parts->text.model;
	int64_t weights = text ? smalti_weights_device_bytes(text->weights) : 0;
	if (parts->vae)
		weights += smalti_weights_device_bytes(parts->vae->net[SMALTI_VAE_ENCODE]->weights);
	parts->room = smalti_extract_room_of(parts->session, main_memory(parts), weights);
	parts->pack_tokens = text ? smalti_extract_pack_tokens(text, &parts->room) : 0;
	const int64_t device_pack = parts->room.devices ? parts->pack_tokens : 0;
	parts->window_tokens = text ? smalti_extract_window_tokens(text, device_pack) : INT64_MAX;
}

struct listing {
	smalti_extract_callback *on_progress;
	void *user;
};

static bool on_list(void *user, double share)
{
	const struct listing *listing = user;
	const struct smalti_extract_progress progress = {.listed = share};
	return !listing->on_progress ||
	       listing->on_progress(listing->user, &progress) == SMALTI_EXTRACT_CONTINUE;
}

/* Returns the items of the list with which the directory began; 0: there is no such directory; -1 with an
 * error. */
static int64_t count_before(const struct smalti_extract_options *o, struct smalti_error *error)
{
	const int there = o->append ? smalti_directory_look(o->output, error) : 0;
	if (there <= 0)
		return there;
	int64_t items = 0;
	SCOPED(cJSON_Delete) cJSON *identity = smalti_directory_identity(o->output, error);
	if (!identity)
		return -1;
	(void)smalti_json_int(cJSON_GetObjectItemCaseSensitive(identity, "list"), "items",
			      SMALTI_JSON_REQUIRED, 0, SMALTI_ITEMS_MAX, &items, NULL);
	return items;
}

static int open_dataset(struct smalti_extract_parts *parts, smalti_extract_callback *on_progress, void *user,
			struct smalti_error *error)
{
	struct smalti_extract_options *o = &parts->options;
	struct listing listing = {on_progress, user};
	const int64_t before = count_before(o, error);
	if (before < 0)
		return -1;
	struct smalti_dataset_options options = {.paths = o->inputs,
						 .path_count = o->input_count,
						 .image_root = o->image_root,
						 .caption_count = o->text ? o->caption_count : 0,
						 .find_caption = o->text,
						 .images = o->images,
						 .prefix = before,
						 .on_progress = on_list,
						 .user = &listing};
	memcpy(options.captions, o->captions, sizeof(options.captions));
	parts->dataset = smalti_dataset_open(&options, error);
	if (!parts->dataset)
		return -1;
	const struct smalti_dataset_info *info = smalti_dataset_info(parts->dataset);
	o->caption_count = info->caption_count;
	memcpy(o->captions, info->captions, (size_t)info->caption_count * sizeof(*info->captions));
	return 0;
}

static void describe(struct smalti_extract_parts *parts)
{
	const struct smalti_extract_options *o = &parts->options;
	struct smalti_shard_schema *schema = &parts->schema;
	*schema = (struct smalti_shard_schema){.dtype = (enum smalti_dtype)o->type};
	if (parts->text.model) {
		schema->text_width = parts->text.model->width;
		schema->max_tokens = o->max_tokens;
	}
	if (parts->vae) {
		schema->latent_channels = parts->vae->config.latent_channels;
		schema->scaling_factor = parts->vae->config.scaling_factor;
		schema->image_size = o->image_size;
	}
}

/* Fills in what the data set says. */
static void describe_captions(struct smalti_extract_parts *parts)
{
	const struct smalti_extract_options *o = &parts->options;
	parts->schema.caption_count = o->caption_count;
	memcpy(parts->schema.captions, o->captions, sizeof(parts->schema.captions));
}

static int identify(struct smalti_extract_parts *parts, struct smalti_error *error)
{
	parts->identity = smalti_extract_identity(parts, error);
	parts->provenance = parts->identity ? cJSON_PrintUnformatted(parts->identity) : NULL;
	parts->schema.provenance = parts->provenance;
	parts->before = smalti_extract_identity_before(parts);
	if (parts->identity && !parts->provenance)
		smalti_fail(error, SMALTI_ENOMEM, "no memory for a description of the features");
	return parts->provenance ? 0 : -1;
}

int smalti_extract_parts_open_models(struct smalti_extract_parts *parts, struct smalti_session *session,
				     const struct smalti_extract_options *options, struct smalti_error *error)
{
	*parts = (struct smalti_extract_parts){.session = session, .options = *options};
	parts->weights = smalti_task_group_new(session, "weights", INT64_MAX, error);
	if (!parts->weights || smalti_precision_choose(options->model.precision, session, error) < 0 ||
	    (options->text && open_text(parts, error) < 0) ||
	    (options->images && open_vae(parts, error) < 0) || look_for_unused(parts, error) < 0)
		return -1;
	fit_into_memory(parts);
	choose_sizes(parts);
	describe(parts);
	return 0;
}

int smalti_extract_parts_open(struct smalti_extract_parts *parts, struct smalti_session *session,
			      const struct smalti_extract_options *options,
			      smalti_extract_callback *on_progress, void *user, struct smalti_error *error)
{
	if (smalti_extract_parts_open_models(parts, session, options, error) < 0 ||
	    open_dataset(parts, on_progress, user, error) < 0)
		return -1;
	describe_captions(parts);
	return identify(parts, error);
}

void smalti_extract_parts_close(struct smalti_extract_parts *parts)
{
	cJSON_Delete(parts->identity);
	cJSON_Delete(parts->before);
	free(parts->provenance);
	smalti_vae_close(parts->vae);
	if (parts->weights)
		smalti_task_group_wait(parts->weights); /* its tasks read the mapped file */
	smalti_prompt_encoder_close(&parts->text);
	smalti_task_group_free(parts->weights);
	smalti_dataset_close(parts->dataset); /* it owns the captions' keys */
	*parts = (struct smalti_extract_parts){0};
}
