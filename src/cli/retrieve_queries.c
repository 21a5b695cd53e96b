/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/retrieve_queries.h"
#include "cli/signals.h"
#include "retrieve/index.h"
#include "text/prompts.h"

static int64_t dim_of(const struct smalti_index *index)
{
	struct smalti_index_info info;
	smalti_index_info(index, &info);
	return info.dim;
}

/* Adds a query without its vector. */
static int add_name(struct smalti_queries *queries, const char *name, struct smalti_error *error)
{
	if (smalti_grow(&queries->names, queries->count, sizeof(*queries->names), error) < 0)
		return -1;
	queries->names[queries->count] = smalti_format(error, "%s", name);
	if (!queries->names[queries->count])
		return -1;
	queries->count++;
	return 0;
}

/* Returns where the next query's vector goes. */
static float *next_vector(struct smalti_queries *queries, int64_t dim, struct smalti_error *error)
{
	if (smalti_grow(&queries->vectors, queries->count, dim * (int64_t)sizeof(float), error) < 0)
		return NULL;
	return queries->vectors + queries->count * dim;
}

static int read_prompts(struct smalti_queries *queries, const char *path, struct smalti_error *error)
{
	struct smalti_prompts *prompts = smalti_prompts_open(path, error);
	int status = prompts ? 1 : -1;
	while (status > 0) {
		struct smalti_prompt_line line;
		const enum smalti_prompts_status read = smalti_prompts_next(prompts, &line, error);
		status = read == SMALTI_PROMPTS_END ? 0 : read == SMALTI_PROMPTS_LINE ? 1 : -1;
		if (status > 0 && add_name(queries, line.prompt, error) < 0)
			status = -1;
		if (read == SMALTI_PROMPTS_LINE || read == SMALTI_PROMPTS_BAD)
			smalti_prompt_line_free(&line);
	}
	smalti_prompts_close(prompts);
	return status;
}

static int read_texts(struct smalti_queries *queries, const struct smalti_query_source *source,
		      const struct smalti_index *index, struct smalti_session *session,
		      struct smalti_error *error)
{
	if (source->prompts && read_prompts(queries, source->prompts, error) < 0)
		return -1;
	for (int i = 0; i < source->text_count; i++)
		if (add_name(queries, source->texts[i], error) < 0)
			return -1;
	if (queries->count == 0)
		return smalti_fail(error, SMALTI_EINVAL, "%s: has no prompts", source->prompts);
	queries->vectors = smalti_calloc(queries->count, dim_of(index) * (int64_t)sizeof(float), error);
	return queries->vectors
		   ? smalti_index_encode(index, session, &source->model, (const char *const *)queries->names,
					 queries->count, queries->vectors, error)
		   : -1;
}

/* Adds items of `of`, by which `index` is searched. */
static int add_items(struct smalti_queries *queries, const struct smalti_query_source *source,
		     const struct smalti_index *index, const struct smalti_index *of,
		     struct smalti_error *error)
{
	if (smalti_index_fits(index, of, error) < 0)
		return -1;
	for (int i = 0; i < source->items.count; i++) {
		const int64_t number = smalti_index_find(of, source->items.items[i], error);
		float *vector = number < 0 ? NULL : next_vector(queries, dim_of(index), error);
		if (!vector || add_name(queries, source->items.items[i], error) < 0)
			return -1;
		smalti_index_vector(of, number, vector);
	}
	return 0;
}

static int read_items(struct smalti_queries *queries, const struct smalti_query_source *source,
		      const struct smalti_index *index, struct smalti_error *error)
{
	if (!source->from)
		return add_items(queries, source, index, index, error);
	struct smalti_index *of = smalti_index_open(source->from, error);
	int status = of ? add_items(queries, source, index, of, error) : -1;
	if (of && smalti_index_check(of, error) < 0)
		status = -1;
	smalti_index_close(of);
	return status;
}

static enum smalti_index_kind kind_of(const struct smalti_query_source *source,
				      const struct smalti_index *index)
{
	struct smalti_index_info info;
	smalti_index_info(index, &info);
	return source->has_by ? source->by : info.kind;
}

static int add_row(struct smalti_queries *queries, const struct smalti_query_source *source,
		   const struct smalti_index *index, const struct smalti_features_row *row,
		   struct smalti_error *error)
{
	float *vector = next_vector(queries, dim_of(index), error);
	const int found = vector ? smalti_index_row_vector(index, queries->features, kind_of(source, index),
							   queries->caption, row, vector, error)
				 : -1;
	queries->skipped += found == 0;
	if (found <= 0)
		return found;
	if (smalti_grow(&queries->rows, queries->count, sizeof(*queries->rows), error) < 0)
		return -1;
	queries->rows[queries->count] = row->index;
	return add_name(queries, row->key, error);
}

static int read_features(struct smalti_queries *queries, const struct smalti_query_source *source,
			 const struct smalti_index *index, struct smalti_error *error)
{
	struct smalti_features_row row;
	const enum smalti_index_kind by = kind_of(source, index);
	if (source->caption && by == SMALTI_INDEX_IMAGES)
		return smalti_fail(error, SMALTI_EINVAL, "--caption-key: has no meaning for images");
	queries->features = smalti_features_open(source->features, NULL, error);
	queries->caption = queries->features
			       ? smalti_index_accepts(index, queries->features, by, source->caption, error)
			       : -1;
	int status = queries->caption < 0 ? -1 : 1;
	while (status > 0 && (status = smalti_features_next(queries->features, &row, error)) > 0)
		if (smalti_signals_caught())
			status = smalti_fail(error, SMALTI_ECANCELLED, "stopped");
		else if (add_row(queries, source, index, &row, error) < 0)
			status = -1;
	if (status == 0 && queries->count == 0)
		return smalti_fail(error, SMALTI_EINVAL, "%s: has no rows to search for", source->features);
	return status;
}

int smalti_queries_read(struct smalti_queries *queries, const struct smalti_query_source *source,
			const struct smalti_index *index, struct smalti_session *session,
			struct smalti_error *error)
{
	const bool texts = source->text_count > 0 || source->prompts, items = source->items.count > 0;
	*queries = (struct smalti_queries){0};
	if (texts + items + (source->features != NULL) != 1)
		return smalti_fail(error, SMALTI_EINVAL,
				   "expected one of prompts, --like or --features to search for");
	if (source->caption && !source->features)
		return smalti_fail(error, SMALTI_EINVAL, "--caption-key: has a meaning with --features only");
	if (source->has_by && !source->features)
		return smalti_fail(error, SMALTI_EINVAL, "--by: has a meaning with --features only");
	if (source->from && !items)
		return smalti_fail(error, SMALTI_EINVAL, "--from: has a meaning with --like only");
	if (texts)
		return read_texts(queries, source, index, session, error);
	return items ? read_items(queries, source, index, error)
		     : read_features(queries, source, index, error);
}

int smalti_queries_check_texts(const struct smalti_query_source *source, const struct smalti_index *index,
			       struct smalti_error *error)
{
	const bool texts = source->text_count > 0 || source->prompts;
	if (texts || (source->features && kind_of(source, index) == SMALTI_INDEX_CAPTIONS))
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "--rerank: needs texts to search for: give prompts, or --features with --by "
			   "captions");
}

int smalti_queries_text(void *user, int64_t number, struct smalti_rerank_query *query,
			struct smalti_error *error)
{
	const struct smalti_queries *queries = user;
	struct smalti_features_info info;
	struct smalti_features_row row;
	if (!queries->features) {
		query->text = queries->names[number];
		return 0;
	}
	if (smalti_features_get(queries->features, queries->rows[number], &row, error) < 0)
		return -1;
	smalti_features_info(queries->features, &info);
	query->states = row.texts[queries->caption];
	query->type = info.type;
	return 0;
}

void smalti_queries_free(struct smalti_queries *queries)
{
	smalti_features_close(queries->features);
	free(queries->rows);
	for (int64_t i = 0; i < queries->count; i++)
		free(queries->names[i]);
	free(queries->names);
	free(queries->vectors);
}
