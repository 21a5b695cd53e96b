/* SPDX-License-Identifier: Apache-2.0 */
#include "retrieve/rerank.h"
#include "codelets/codelets.h"
#include "graphs/denoising_error.h"
#include "jobs/plan.h"
#include "samplers/draws.h"

#include <math.h>

/* The caption of a query, as the transformer reads it. It lives while any forward reads it. */
struct caption {
	struct smalti_reranker *of;
	const struct smalti_text *text;       /* NULL: the caption was made of hidden states */
	struct smalti_task_group *task_group; /* fails with the caption */
	struct smalti_cross_cache *cache;
	int64_t tokens, users;
};

/* A forward: an item at a timestep, with a caption. */
struct forward {
	struct smalti_job job;
	struct smalti_reranker *of;
	struct caption *caption; /* NULL: the empty one */
	struct smalti_loss_parts parts;
	double *error; /* receives its mean square error */
};

/* One call of smalti_rerank(). */
struct reranking {
	struct smalti_reranker *r;
	int64_t count, top, candidates;
	const struct smalti_found *found;
	double *errors;      /* [count, candidates, timesteps] */
	double *empty;       /* with the empty caption, of each item once [empty_count, timesteps] */
	int64_t *places;     /* [items]: an index in `empty`, from 1 on; 0: none yet */
	int64_t empty_count; /* items that are candidates of any query */
};

static int64_t timesteps_of(const struct reranking *all)
{
	return all->r->options.timesteps;
}

/* Returns the candidates of a query, which may be fewer than requested. */
static int64_t candidates_of(const struct reranking *all, int64_t query)
{
	const struct smalti_found *found = all->found + query * all->top;
	int64_t count = 0;
	while (count < all->candidates && found[count].number >= 0)
		count++;
	return count;
}

static struct smalti_tile *insert_states(struct smalti_task_group *task_group, int64_t width,
					 const struct smalti_rerank_query *query)
{
	const enum smalti_dtype dtype = (enum smalti_dtype)query->type;
	const int64_t count = query->states.tokens * width;
	struct smalti_tile *stored =
	    smalti_tile_upload(task_group, 1, count * smalti_dtype_bytes(dtype), query->states.values);
	struct smalti_tile *text =
	    smalti_tile_new(task_group, query->states.tokens, width * (int64_t)sizeof(float));
	smalti_insert(convert, task_group, (.x = stored, .y = text), .count = count, .from = dtype,
		      .to = SMALTI_F32);
	smalti_tile_release(stored);
	return text;
}

static int take_states(struct caption *caption, const struct smalti_rerank_query *query,
		       struct smalti_error *error)
{
	struct smalti_model *model = caption->of->model;
	struct smalti_denoiser *denoiser = model->denoiser;
	caption->tokens = query->states.tokens;
	caption->task_group = smalti_task_group_new(caption->of->session, "caption", 0, error);
	if (!caption->task_group)
		return -1;
	smalti_task_group_depends_on(caption->task_group, model->task_group);
	struct smalti_tile *text = insert_states(caption->task_group, denoiser->text_width, query);
	caption->cache =
	    denoiser->functions->cross_cache(denoiser, caption->task_group, text, caption->tokens);
	smalti_tile_release(text);
	return smalti_task_group_broken(caption->task_group)
		   ? smalti_task_group_status(caption->task_group, error)
		   : 0;
}

static int encode(struct caption *caption, const char *text, struct smalti_error *error)
{
	struct smalti_reranker *r = caption->of;
	const struct smalti_text_request request = {
	    .prompts = &text, .count = 1, .cleaning = r->cleaning, .strategy = &smalti_strategy_none};
	if (smalti_texts_get(r->texts, &request, &caption->text, error) < 0)
		return -1;
	caption->task_group = caption->text->task_group;
	caption->cache = caption->text->cache;
	caption->tokens = caption->text->tokens;
	return 0;
}

static void leave(struct caption *caption)
{
	if (!caption || --caption->users > 0)
		return;
	if (caption->text) {
		smalti_text_put(caption->of->texts, caption->text);
	} else {
		caption->of->model->denoiser->functions->release_cross_cache(caption->cache);
		smalti_task_group_free(caption->task_group);
	}
	free(caption);
}

static struct caption *open_caption(struct smalti_reranker *r, const struct smalti_rerank_query *query,
				    struct smalti_error *error)
{
	struct caption *caption = smalti_calloc(1, sizeof(*caption), error);
	if (!caption)
		return NULL;
	*caption = (struct caption){.of = r, .users = 1};
	const int status =
	    query->text ? encode(caption, query->text, error) : take_states(caption, query, error);
	if (status == 0)
		return caption;
	if (query->text)
		free(caption); /* it has nothing */
	else
		leave(caption);
	return NULL;
}

static void complete(struct smalti_job *job)
{
	struct forward *forward = (struct forward *)job;
	struct smalti_reranker *r = forward->of;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (smalti_task_group_status(job->task_group, &error) < 0 && !r->broken.code)
		r->broken = error;
	*forward->error = forward->parts.mse;
	leave(forward->caption);
	r->done++;
	free(forward);
}

/* Waits until memory has room. */
static int admit(struct smalti_reranker *r, const struct smalti_denoising_error *work, int64_t bytes,
		 struct smalti_error *error)
{
	const int64_t memory = smalti_memory_for_images(r->model);
	if (bytes > memory)
		return smalti_fail(error, SMALTI_ENOMEM,
				   "latents of %" PRId64 "x%" PRId64 " need about %" PRId64
				   " MB beside the model, but %" PRId64
				   " MB are allowed: raise the memory limit, or take a model of less",
				   work->width, work->height, (bytes >> 20) + 1, memory >> 20);
	smalti_queue_admit(&r->queue, bytes, memory);
	if (r->queue.active_bytes + bytes + smalti_texts_unused_bytes(r->texts) > memory)
		smalti_texts_drop_unused(r->texts);
	return smalti_pass(error, &r->broken);
}

/* Inserts a forward with the caption (NULL: the empty one). */
static int insert_forward(struct smalti_reranker *r, struct smalti_denoising_error *work,
			  struct caption *caption, double *to, struct smalti_error *error)
{
	struct smalti_denoiser *denoiser = r->model->denoiser;
	const int64_t tokens = caption ? caption->tokens : r->empty->tokens;
	const int64_t bytes = smalti_denoising_error_bytes(denoiser, work) +
			      denoiser->functions->cross_cache_bytes(denoiser, tokens);
	struct forward *forward =
	    admit(r, work, bytes, error) < 0 ? NULL : smalti_calloc(1, sizeof(*forward), error);
	if (!forward)
		return -1;
	*forward = (struct forward){
	    .of = r, .caption = caption, .error = to, .job = {.bytes = bytes, .complete = complete}};
	if (smalti_job_open(&r->queue, &forward->job, "reranking", error) < 0) {
		free(forward);
		return -1;
	}
	if (caption)
		caption->users++;
	struct smalti_task_group *task_group = forward->job.task_group;
	smalti_task_group_depends_on(task_group, r->model->task_group);
	smalti_task_group_depends_on(task_group, caption ? caption->task_group : r->empty->task_group);
	work->cache = caption ? caption->cache : r->empty->cache;
	smalti_denoising_error_insert(denoiser, task_group, work, &forward->parts);
	smalti_job_submit(&forward->job);
	return 0;
}

/* Inserts forwards at all timesteps, whose noise depends on no item. */
static int insert_forwards(struct smalti_reranker *r, struct smalti_denoising_error *work,
			   struct caption *caption, double *errors, struct smalti_error *error)
{
	for (int64_t i = 0; i < r->options.timesteps; i++) {
		work->timestep = smalti_rerank_timestep(r, i);
		work->seed =
		    smalti_stream_seed(r->options.seed, SMALTI_STREAM_RERANKING, (uint64_t)work->timestep, 0);
		if (insert_forward(r, work, caption, &errors[i], error) < 0)
			return -1;
	}
	return 0;
}

/* Checks that it is the item's row, and has the features that are needed. */
static int check_row(const struct smalti_reranker *r, const struct smalti_index_item *item,
		     const struct smalti_features_row *row, struct smalti_error *error)
{
	const struct smalti_features_image *image = &row->image;
	const int64_t patch = r->model->denoiser->patch_size;
	if (strcmp(row->key, item->key) != 0)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: item %" PRId64
				   " is '%s', in %s it is '%s': give the features that the "
				   "index was made of",
				   r->directory, item->index, row->key, r->index->directory, item->key);
	if (image->latent_height == 0)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: item %" PRId64 " (%s): has no features of its image: extract them",
				   r->directory, item->index, row->key);
	if (image->latent_height % patch || image->latent_width % patch)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: item %" PRId64 " (%s): its latents have %" PRId64 " rows and %" PRId64
				   " columns; the transformer needs multiples of %" PRId64,
				   r->directory, item->index, row->key, image->latent_height,
				   image->latent_width, patch);
	return 0;
}

static int read_row(struct smalti_reranker *r, int64_t number, struct smalti_features_row *row,
		    struct smalti_error *error)
{
	struct smalti_index_item item;
	if (smalti_index_item(r->index, number, &item, error) < 0)
		return -1;
	int status = smalti_features_get(r->features, item.index, row, error);
	if (status == 0)
		status = check_row(r, &item, row, error);
	free(item.key);
	return status;
}

/* Inserts one item with a caption, and the first time also with the empty one. */
static int insert_candidate(struct reranking *all, int64_t number, struct caption *caption, double *errors,
			    struct smalti_error *error)
{
	struct smalti_reranker *r = all->r;
	struct smalti_features_row row;
	if (read_row(r, number, &row, error) < 0)
		return -1;
	struct smalti_denoising_error work = {
	    .height = row.image.latent_height,
	    .width = row.image.latent_width,
	    .vae_factor = smalti_model_factor(r->model),
	    .band_tokens = smalti_tile_tokens(r->model->session, r->model->denoiser, NULL),
	    .means = row.image.values,
	    .dtype = (enum smalti_dtype)r->info.type,
	    .factor = (float)r->info.scaling_factor};
	if (all->places[number] == 0) {
		all->places[number] = ++all->empty_count;
		double *empty = all->empty + (all->empty_count - 1) * timesteps_of(all);
		if (insert_forwards(r, &work, NULL, empty, error) < 0)
			return -1;
	}
	return insert_forwards(r, &work, caption, errors, error);
}

static int insert_query(struct reranking *all, int64_t number, const struct smalti_rerank_query *query,
			struct smalti_error *error)
{
	struct caption *caption = open_caption(all->r, query, error);
	int status = caption ? 0 : -1;
	const int64_t candidates = candidates_of(all, number);
	for (int64_t i = 0; i < candidates && status == 0; i++)
		status =
		    insert_candidate(all, all->found[number * all->top + i].number, caption,
				     all->errors + (number * all->candidates + i) * timesteps_of(all), error);
	leave(caption);
	return status;
}

/* A candidate with its score. */
struct ranked {
	double score;
	int64_t place; /* its old place */
	struct smalti_found found;
};

static int better(const void *a, const void *b)
{
	const struct ranked *one = a, *other = b;
	if (one->score != other->score)
		return one->score < other->score ? 1 : -1;
	return one->place < other->place ? -1 : 1;
}

static double score_of(const struct reranking *all, int64_t query, int64_t place)
{
	const int64_t count = timesteps_of(all), item = all->found[query * all->top + place].number;
	const double *with = all->errors + (query * all->candidates + place) * count;
	const double *without = all->empty + (all->places[item] - 1) * count;
	double sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += without[i] - with[i];
	return sum / (double)count;
}

/* Writes the candidates in their new order into `found` and `scores` of the query. */
static int rank(const struct reranking *all, int64_t query, struct ranked *list, struct smalti_found *found,
		double *scores, struct smalti_error *error)
{
	const int64_t count = candidates_of(all, query);
	for (int64_t i = 0; i < count; i++) {
		list[i] = (struct ranked){score_of(all, query, i), i, found[i]};
		if (!isfinite(list[i].score))
			return smalti_fail(
			    error, SMALTI_ECORRUPT,
			    "the transformer's output for item %" PRId64
			    " of %s is not finite: its weights or its latents are damaged, or beyond "
			    "the --precision",
			    found[i].number, all->r->index->directory);
	}
	qsort(list, (size_t)count, sizeof(*list), better);
	for (int64_t i = 0; i < all->candidates; i++) {
		scores[i] = i < count ? list[i].score : NAN;
		if (i < count)
			found[i] = list[i].found;
	}
	return 0;
}

static int rank_all(const struct reranking *all, struct smalti_found *found, double *scores,
		    struct smalti_error *error)
{
	SCOPED(free) struct ranked *list = smalti_calloc(all->candidates, sizeof(*list), error);
	int status = list ? 0 : -1;
	for (int64_t i = 0; i < all->count && status == 0; i++)
		status = rank(all, i, list, found + i * all->top, scores + i * all->candidates, error);
	return status;
}

/* Counts the forwards, and allocates room for their results. */
static int make_room(struct reranking *all, struct smalti_error *error)
{
	const int64_t items = all->r->index->info.items;
	int64_t pairs = 0, distinct = 0, errors = all->count;
	if (!smalti_multiply(&errors, all->candidates) || !smalti_multiply(&errors, timesteps_of(all)))
		return smalti_fail(error, SMALTI_EINVAL,
				   "%" PRId64 " candidates of %" PRId64 " queries: too many", all->candidates,
				   all->count);
	all->places = smalti_calloc(items, sizeof(*all->places), error);
	all->errors = smalti_calloc(errors, sizeof(*all->errors), error);
	if (!all->places || !all->errors)
		return -1;
	for (int64_t query = 0; query < all->count; query++)
		for (int64_t i = candidates_of(all, query); i-- > 0; pairs++)
			distinct += all->places[all->found[query * all->top + i].number]++ == 0;
	memset(all->places, 0, (size_t)items * sizeof(*all->places));
	all->r->done = 0;
	all->r->total = (pairs + distinct) * timesteps_of(all);
	all->empty =
	    smalti_calloc(smalti_max(distinct, 1), timesteps_of(all) * (int64_t)sizeof(double), error);
	return all->empty ? 0 : -1;
}

static int check(const struct reranking *all, const void *query, const double *scores,
		 struct smalti_error *error)
{
	return smalti_check_given(all->r, "reranker", error) < 0 ||
		       smalti_check_given(query, "queries", error) < 0 ||
		       smalti_check_given(all->found, "items", error) < 0 ||
		       smalti_check_given(scores, "scores to fill", error) < 0 ||
		       smalti_check_range(all->count, 1, INT32_MAX, "number of queries", error) < 0 ||
		       smalti_check_range(all->top, 1, INT32_MAX, "number of items found", error) < 0 ||
		       smalti_check_range(all->candidates, 1, all->top, "number of candidates", error) < 0
		   ? -1
		   : 0;
}

int smalti_rerank(struct smalti_reranker *reranker, int64_t count, int64_t top, int64_t candidates,
		  int (*query)(void *user, int64_t number, struct smalti_rerank_query *query,
			       struct smalti_error *error),
		  void *user, struct smalti_found *found, double *scores, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct reranking all = {
	    .r = reranker, .count = count, .top = top, .candidates = candidates, .found = found};
	if (check(&all, (const void *)(uintptr_t)query, scores, error) < 0)
		return -1;
	reranker->broken = (struct smalti_error)SMALTI_NO_ERROR;
	int status = make_room(&all, error);
	for (int64_t i = 0; i < count && status == 0; i++) {
		struct smalti_rerank_query asked = {0};
		status = query(user, i, &asked, error);
		if (status == 0)
			status = insert_query(&all, i, &asked, error);
	}
	smalti_queue_drain(&reranker->queue);
	if (status == 0)
		status = smalti_pass(error, &reranker->broken);
	if (status == 0)
		status = rank_all(&all, found, scores, error);
	free(all.places);
	free(all.errors);
	free(all.empty);
	return status;
}
