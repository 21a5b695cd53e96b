/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "jobs/model.h"
#include "jobs/queue.h"
#include "retrieve/index.h"
#include "smalti/features.h"

/* For option tables, too: by measurement (docs/retrieve.md). */
#define SMALTI_RERANK_DEFAULTS                                                                               \
	{                                                                                                    \
		.timesteps = 10                                                                              \
	}

/* What reranking has open: rerank_open.c. */
struct smalti_reranker {
	const struct smalti_index *index;
	struct smalti_session *session;
	struct smalti_rerank_options options;
	struct smalti_features *features;
	struct smalti_features_info info; /* of the features */
	const char *directory;            /* where they are */
	struct smalti_model *model;
	enum smalti_cleaning cleaning; /* of texts, as the index's captions were */
	struct smalti_queue queue;
	struct smalti_texts *texts;
	const struct smalti_text *empty;
	struct smalti_error broken; /* the first failure of a job */
	int64_t done, total;        /* forwards */
};

/* Timestep `number` of them. */
int64_t smalti_rerank_timestep(const struct smalti_reranker *reranker, int64_t number);
