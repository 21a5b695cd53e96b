/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/plan.h"
#include "retrieve/rerank.h"
#include "samplers/diffusion_loss.h"

#include <math.h>

void smalti_rerank_defaults(struct smalti_rerank_options *options)
{
	*options = (struct smalti_rerank_options)SMALTI_RERANK_DEFAULTS;
}

int64_t smalti_rerank_timestep(const struct smalti_reranker *reranker, int64_t number)
{
	return (2 * number + 1) * SMALTI_TRAINING_TIMESTEPS / (2 * reranker->options.timesteps);
}

static int open_features(struct smalti_reranker *r, struct smalti_error *error)
{
	r->directory = r->options.features ? r->options.features : r->index->info.features;
	r->features = smalti_features_open(r->directory, NULL, error);
	if (!r->features) {
		if (!r->options.features)
			smalti_error_prefix(error, "the features that %s was made of", r->index->directory);
		return -1;
	}
	smalti_features_info(r->features, &r->info);
	return r->info.latent_channels > 0
		   ? 0
		   : smalti_fail(error, SMALTI_EINVAL,
				 "%s: has no features of images, whose noise could be told", r->directory);
}

/* Checks that the scheduler's noise is that of training. */
static int check_scheduler(const struct smalti_model *model, struct smalti_error *error)
{
	const struct smalti_scheduler_config *c = &model->scheduler;
	const bool same = c->prediction == SMALTI_PREDICTS_EPSILON &&
			  c->beta_schedule == SMALTI_BETAS_LINEAR &&
			  c->train_timesteps == SMALTI_TRAINING_TIMESTEPS &&
			  fabs(c->beta_start - 1e-4) < 1e-12 && fabs(c->beta_end - 0.02) < 1e-10;
	return same ? 0
		    : smalti_fail(error, SMALTI_EUNSUPPORTED,
				  "%s: reranking expects a \"prediction_type\" of epsilon and a linear "
				  "\"beta_schedule\" of %d steps from 0.0001 to 0.02, but found others: give "
				  "--model one that was trained so",
				  model->scheduler_path, SMALTI_TRAINING_TIMESTEPS);
}

/* Digests the model's own part, as features do. */
static int digest_of(const struct smalti_reranker *r, enum smalti_index_kind kind, char **directory,
		     char digest[SMALTI_DIGEST_LENGTH + 1], struct smalti_error *error)
{
	const struct smalti_model_options *o = &r->options.model;
	const char *whole = o->directory ? o->directory : smalti_embedded_model(error);
	const bool texts = kind == SMALTI_INDEX_CAPTIONS;
	SCOPED(free)
	char *tokenizer = whole ? smalti_model_component(o->tokenizer, whole, "tokenizer", error) : NULL;
	*directory = whole ? smalti_model_component(texts ? o->text_encoder : o->vae, whole,
						    texts ? "text_encoder" : "vae", error)
			   : NULL;
	if (!tokenizer || !*directory)
		return -1;
	if (texts)
		return smalti_prompt_encoder_digest(&r->model->text, tokenizer, *directory, digest, error);
	const struct smalti_checkpoint *const weights[] = {r->model->vae_checkpoint};
	SCOPED(free) char *config = smalti_format(error, "%s/config.json", *directory);
	return config ? smalti_digest((const char *const[]){config}, 1, weights, 1, digest, error) : -1;
}

/* Checks the model, `made`, of the features or the index `whose`. */
static int check_model(const struct smalti_reranker *r, enum smalti_index_kind kind, const cJSON *made,
		       const char *whose, struct smalti_error *error)
{
	static const char *const parts[] = {"text encoder", "VAE"}, *const options[] = {
									"--tokenizer and --text-encoder",
									"--vae"};
	SCOPED(free) char *directory = NULL;
	char digest[SMALTI_DIGEST_LENGTH + 1];
	if (digest_of(r, kind, &directory, digest, error) < 0)
		return -1;
	const char *other = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(made, "model"));
	return other && strcmp(digest, other) == 0
		   ? 0
		   : smalti_fail(error, SMALTI_EINVAL,
				 "%s: its %s are of the %s %s, %s is %s: give the --model, or %s, that they "
				 "were extracted with",
				 whose, smalti_index_kinds[kind], parts[kind], other ? other : "(unknown)",
				 directory, digest, options[kind]);
}

static int check_models(const struct smalti_reranker *r, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *images = smalti_vector_model(&r->info, SMALTI_INDEX_IMAGES, error);
	if (!images || check_scheduler(r->model, error) < 0 ||
	    check_model(r, SMALTI_INDEX_CAPTIONS, smalti_index_model(r->index, SMALTI_INDEX_CAPTIONS),
			r->index->directory, error) < 0 ||
	    check_model(r, SMALTI_INDEX_IMAGES, images, r->directory, error) < 0)
		return -1;
	return r->model->vae->config.has_statistics
		   ? smalti_fail(error, SMALTI_EUNSUPPORTED,
				 "%s: reranking needs features of a VAE without statistics of its latents",
				 r->directory)
		   : 0;
}

static bool has_room(const struct smalti_reranker *r, struct smalti_error *error)
{
	if (smalti_memory_for_images(r->model) > 0)
		return true;
	smalti_fail(error, SMALTI_ENOMEM, "the model leaves nothing of the %" PRId64 " MB that are allowed",
		    r->session->memory >> 20);
	return false;
}

static bool report(const struct smalti_reranker *r)
{
	return !r->options.on_progress || r->options.on_progress(r->options.user, r->done, r->total);
}

static void on_progress(void *user)
{
	struct smalti_reranker *r = user;
	if (!report(r))
		smalti_queue_cancel(&r->queue);
}

static int open_queue(struct smalti_reranker *r, struct smalti_error *error)
{
	static const char *const empty = "";
	const int64_t max = 4 * (int64_t)r->session->workers;
	if (smalti_queue_open(&r->queue, r->session, max, error) < 0)
		return -1;
	r->queue.progress = on_progress;
	r->queue.user = r;
	r->texts = smalti_texts_new(r->model, r->queue.cancelled, error);
	const struct smalti_text_request request = {.prompts = &empty,
						    .count = 1,
						    .cleaning = SMALTI_CLEANING_RAW,
						    .strategy = &smalti_strategy_none};
	return r->texts ? smalti_texts_get(r->texts, &request, &r->empty, error) : -1;
}

static int open_all(struct smalti_reranker *r, struct smalti_error *error)
{
	int cleaning = 0;
	if (smalti_index_check_kind(r->index, SMALTI_INDEX_CAPTIONS, error) < 0 ||
	    open_features(r, error) < 0)
		return -1;
	r->model = smalti_model_open(r->session, &r->options.model, error);
	if (!r->model || check_models(r, error) < 0 || !has_room(r, error) ||
	    smalti_index_preparation(r->index, &cleaning, &r->model->text.max_tokens, error) < 0)
		return -1;
	r->cleaning = (enum smalti_cleaning)cleaning;
	return open_queue(r, error);
}

struct smalti_reranker *smalti_reranker_open(const struct smalti_index *index, struct smalti_session *session,
					     const struct smalti_rerank_options *options,
					     struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(index, "index", error) < 0 ||
	    smalti_check_given(session, "session", error) < 0 ||
	    smalti_check_given(options, "options", error) < 0 ||
	    smalti_check_range(options->timesteps, 1, SMALTI_TRAINING_TIMESTEPS, "number of timesteps",
			       error) < 0)
		return NULL;
	struct smalti_reranker *r = smalti_calloc(1, sizeof(*r), error);
	if (!r)
		return NULL;
	r->index = index;
	r->session = session;
	r->options = *options;
	if (open_all(r, error) == 0)
		return r;
	smalti_reranker_close(r);
	return NULL;
}

void smalti_reranker_close(struct smalti_reranker *r)
{
	if (!r)
		return;
	r->queue.progress = NULL;
	if (r->queue.cancelled)
		smalti_queue_drain(&r->queue);
	if (r->empty) {
		smalti_task_group_wait(r->empty->task_group);
		smalti_text_put(r->texts, r->empty);
	}
	smalti_texts_free(r->texts);
	smalti_queue_close(&r->queue);
	smalti_model_close(r->model);
	smalti_features_close(r->features);
	free(r);
}
