/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "jobs/model.h"
#include "retrieve/index.h"
#include "retrieve/whitening.h"

/* The vectors of queries, which are like those of the index's items. */

const cJSON *smalti_index_model(const struct smalti_index *index, enum smalti_index_kind kind)
{
	if (index->info.projected)
		return index->projections.of[kind].model;
	return kind == index->info.kind ? index->model : NULL;
}

static const char *caption_of(const struct smalti_index *index)
{
	return index->info.caption ? index->info.caption : index->projections.caption;
}

int smalti_index_check_kind(const struct smalti_index *index, enum smalti_index_kind by,
			    struct smalti_error *error)
{
	static const char *const words[] = {"texts", "images"};
	return smalti_index_model(index, by)
		   ? 0
		   : smalti_fail(error, SMALTI_EINVAL,
				 "%s: is of %s, which %s cannot be compared with: give %s, or "
				 "make the index with --projections",
				 index->directory, smalti_index_kinds[index->info.kind], words[by],
				 smalti_index_kinds[index->info.kind]);
}

int smalti_index_preparation(const struct smalti_index *index, int *cleaning, int64_t *max_tokens,
			     struct smalti_error *error)
{
	const cJSON *model = smalti_index_model(index, SMALTI_INDEX_CAPTIONS);
	if (smalti_json_choice(model, "cleaning", SMALTI_JSON_REQUIRED, smalti_cleanings, cleaning, error) ==
		0 &&
	    smalti_json_int(model, "max_tokens", SMALTI_JSON_REQUIRED, 1, INT32_MAX, max_tokens, error) == 0)
		return 0;
	smalti_error_prefix(error, "%s/%s", index->directory, smalti_index_description);
	return -1;
}

/* Returns the width of captions' or images' vectors in features. */
static int64_t width_of(const struct smalti_index *index, enum smalti_index_kind kind)
{
	return index->info.projected ? index->projections.of[kind].width : index->info.dim;
}

/* Turns a vector of features, in double, into one like the index's vectors. Behind it there is room for an
 * index's vector. False: the vector has none. */
static bool finish(const struct smalti_index *index, enum smalti_index_kind kind, double *vector, float *unit)
{
	const int64_t dim = index->info.dim;
	if (index->info.projected) {
		double *projected = vector + width_of(index, kind);
		smalti_projections_apply(&index->projections, kind, vector, projected);
		return smalti_vector_normalise(dim, projected, unit);
	}
	if (index->whitening)
		smalti_whitening_apply(dim, index->mean, index->whitening, vector);
	return smalti_vector_normalise(dim, vector, unit) || index->whitening;
}

/* Allocates a vector, and behind it the index's. */
static double *vector_room(const struct smalti_index *index, enum smalti_index_kind kind,
			   struct smalti_error *error)
{
	return smalti_calloc(width_of(index, kind) + index->info.dim, sizeof(double), error);
}

/* A query that a sink makes from a text's states. */
struct wanted {
	const struct smalti_index *index;
	int64_t tokens, width;
	const char *text;
	float *query;
};

static int take_states(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	const struct wanted *wanted = user;
	(void)count;
	const struct smalti_features_info info = {
	    .type = SMALTI_FEATURES_F32, .caption_count = 1, .text_width = wanted->width};
	const struct smalti_features_row row = {.texts[0] = {wanted->tokens, NULL, values}};
	SCOPED(free) double *vector = vector_room(wanted->index, SMALTI_INDEX_CAPTIONS, error);
	if (!vector)
		return -1;
	if (smalti_vector_of(&info, SMALTI_INDEX_CAPTIONS, 0, &row, vector) &&
	    finish(wanted->index, SMALTI_INDEX_CAPTIONS, vector, wanted->query))
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "'%s': its states are not finite", wanted->text);
}

/* Encodes as many texts together as is possible, or fewer. */
static int encode_some(struct smalti_prompt_encoder *encoder, struct smalti_task_group *task_group,
		       int cleaning, struct wanted *wanted, int count, struct smalti_error *error)
{
	int32_t *ids[SMALTI_TEXTS_TOGETHER] = {NULL};
	struct smalti_token_ids words[SMALTI_TEXTS_TOGETHER];
	struct smalti_tile *hidden[SMALTI_TEXTS_TOGETHER] = {NULL};
	int status = 0;
	for (int i = 0; i < count && status == 0; i++) {
		status = smalti_prompt_encoder_tokenize(encoder, wanted[i].text, strlen(wanted[i].text),
							(enum smalti_cleaning)cleaning, &ids[i],
							&wanted[i].tokens, error);
		words[i] = (struct smalti_token_ids){.ids = ids[i], .count = wanted[i].tokens};
	}
	if (status == 0) {
		encoder->model->functions->encode(encoder->model, task_group, words, count,
						  &smalti_strategy_none, hidden);
		for (int i = 0; i < count; i++) {
			smalti_insert(deliver, task_group, (.x = hidden[i]),
				      .count = wanted[i].tokens * wanted[i].width, .sink = take_states,
				      .user = &wanted[i]);
			smalti_tile_release(hidden[i]);
		}
		smalti_task_group_wait(task_group);
		status = smalti_task_group_status(task_group, error);
	}
	for (int i = 0; i < count; i++)
		free(ids[i]);
	return status;
}

static int encode_all(const struct smalti_index *index, struct smalti_prompt_encoder *encoder,
		      struct smalti_task_group *task_group, const char *const *texts, int64_t count,
		      float *queries, struct smalti_error *error)
{
	const int64_t dim = index->info.dim;
	int cleaning = 0, status = smalti_index_preparation(index, &cleaning, &encoder->max_tokens, error);
	for (int64_t first = 0; first < count && status == 0; first += SMALTI_TEXTS_TOGETHER) {
		struct wanted wanted[SMALTI_TEXTS_TOGETHER];
		const int some = (int)smalti_min(SMALTI_TEXTS_TOGETHER, count - first);
		for (int i = 0; i < some; i++)
			wanted[i] = (struct wanted){.index = index,
						    .width = width_of(index, SMALTI_INDEX_CAPTIONS),
						    .text = texts[first + i],
						    .query = queries + (first + i) * dim};
		status = encode_some(encoder, task_group, cleaning, wanted, some, error);
	}
	return status;
}

struct smalti_task_group *smalti_index_task_group(const struct smalti_index *index,
						  struct smalti_session *session, const char *name,
						  struct smalti_error *error)
{
	struct smalti_task_group *task_group = smalti_task_group_new(session, name, 0, error);
	if (task_group && index->cancelled)
		smalti_task_group_depends_on(task_group, index->cancelled);
	return task_group;
}

static int open_encoder(const struct smalti_index *index, struct smalti_prompt_encoder *encoder,
			struct smalti_task_group *task_group, const struct smalti_model_options *model,
			struct smalti_error *error)
{
	SCOPED(free) char *directory = NULL;
	char digest[SMALTI_DIGEST_LENGTH + 1];
	if (smalti_prompt_encoder_open_of(encoder, task_group, model, &directory, digest, error) < 0)
		return -1;
	SCOPED(cJSON_Delete) cJSON *own = cJSON_CreateObject();
	cJSON_AddStringToObject(own, "model", digest);
	if (encoder->model->width != width_of(index, SMALTI_INDEX_CAPTIONS))
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: its states are %" PRId64 " wide, those of %s %" PRId64, directory,
				   encoder->model->width, index->directory,
				   width_of(index, SMALTI_INDEX_CAPTIONS));
	return smalti_model_is(own, directory, smalti_index_model(index, SMALTI_INDEX_CAPTIONS),
			       index->directory, error);
}

int smalti_index_encode(const struct smalti_index *index, struct smalti_session *session,
			const struct smalti_model_options *model, const char *const *texts, int64_t count,
			float *queries, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_prompt_encoder encoder = {0};
	if (smalti_check_given(index, "index", error) < 0 ||
	    smalti_check_given(session, "session", error) < 0 ||
	    smalti_check_given(model, "model", error) < 0 || smalti_check_given(texts, "texts", error) < 0 ||
	    smalti_check_given(queries, "queries to fill", error) < 0)
		return -1;
	if (smalti_index_check_kind(index, SMALTI_INDEX_CAPTIONS, error) < 0)
		return -1;
	struct smalti_task_group *task_group = smalti_index_task_group(index, session, "queries", error);
	if (!task_group)
		return -1;
	int status = open_encoder(index, &encoder, task_group, model, error);
	if (status == 0)
		status = encode_all(index, &encoder, task_group, texts, count, queries, error);
	smalti_task_group_wait(task_group);
	smalti_prompt_encoder_close(&encoder);
	smalti_task_group_free(task_group);
	return status;
}

int smalti_index_fits(const struct smalti_index *index, const struct smalti_index *other,
		      struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(index, "index", error) < 0 || smalti_check_given(other, "index", error) < 0)
		return -1;
	const char *own = smalti_files_digest(index->description, smalti_projections_file);
	if (index == other ||
	    (index->info.projected && other->info.projected &&
	     strcmp(own, smalti_files_digest(other->description, smalti_projections_file)) == 0))
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "%s and %s: were not made with the same projections: their items cannot be compared",
	    index->directory, other->directory);
}

int smalti_index_accepts(const struct smalti_index *index, const struct smalti_features *features,
			 enum smalti_index_kind by, const char *caption, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_features_info info;
	if (smalti_check_given(index, "index", error) < 0 ||
	    smalti_check_given(features, "features", error) < 0 ||
	    smalti_check_range(by, 0, SMALTI_INDEX_IMAGES, "kind of query", error) < 0 ||
	    smalti_index_check_kind(index, by, error) < 0)
		return -1;
	smalti_features_info(features, &info);
	SCOPED(cJSON_Delete) cJSON *made = smalti_vector_model(&info, by, error);
	if (!made ||
	    smalti_model_is(made, "the queries", smalti_index_model(index, by), index->directory, error) < 0)
		return -1;
	if (smalti_vector_dim(&info, by) != width_of(index, by))
		return smalti_fail(error, SMALTI_EINVAL,
				   "the queries' vectors have %" PRId64 " values, those of %s %" PRId64,
				   smalti_vector_dim(&info, by), index->directory, width_of(index, by));
	return by == SMALTI_INDEX_IMAGES
		   ? 0
		   : smalti_vector_caption(&info, "the queries", caption ? caption : caption_of(index),
					   error);
}

int smalti_index_row_vector(const struct smalti_index *index, const struct smalti_features *features,
			    enum smalti_index_kind by, int caption, const struct smalti_features_row *row,
			    float *query, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_features_info info;
	SCOPED(free) double *vector = vector_room(index, by, error);
	if (!vector)
		return -1;
	smalti_features_info(features, &info);
	return smalti_vector_of(&info, by, caption, row, vector) && finish(index, by, vector, query);
}
