/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/options.h"
#include "smalti/features.h"
#include "smalti/retrieve.h"

/* Where queries come from: one of these. */
struct smalti_query_source {
	const char *const *texts;
	int text_count;
	const char *prompts;               /* a file of texts; "-": standard input */
	struct smalti_string_list items;   /* keys of items */
	const char *from;                  /* the index that these are of; NULL: the one that is searched */
	const char *features, *caption;    /* a directory whose rows are queries; their caption */
	enum smalti_index_kind by;         /* what of a row is searched for */
	bool has_by;                       /* else `by` is what the index is of */
	struct smalti_model_options model; /* for texts */
};

/* Queries with their names. */
struct smalti_queries {
	int64_t count, skipped; /* skipped: rows of features that have no vector */
	char **names;
	float *vectors; /* [count, dim] */
	/* Of rows of features, by their captions: the features, the caption's place, and each row's index.
	 * @{ */
	struct smalti_features *features;
	int caption;
	int64_t *rows;
	/* @} */
};

/* Fails with SMALTI_EINVAL unless there is one source. Free them in any case. */
int smalti_queries_read(struct smalti_queries *queries, const struct smalti_query_source *source,
			const struct smalti_index *index, struct smalti_session *session,
			struct smalti_error *error);
/* Checks that all queries have texts, which a reranker needs; SMALTI_EINVAL. */
int smalti_queries_check_texts(const struct smalti_query_source *source, const struct smalti_index *index,
			       struct smalti_error *error);
/* Gives smalti_rerank() a query; `queries` is a struct smalti_queries of texts alone. */
int smalti_queries_text(void *queries, int64_t number, struct smalti_rerank_query *query,
			struct smalti_error *error);
void smalti_queries_free(struct smalti_queries *queries);
