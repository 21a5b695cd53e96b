/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "jobs/model.h"
#include "jobs/queue.h"
#include "retrieve/index.h"
#include "smalti/features.h"

/* The defaults, also for option tables, from measurement (docs/retrieve.md). */
#define SMALTI_RERANK_DEFAULTS                                                                               \
	{                                                                                                    \
		.timesteps = 10                                                                              \
	}

/* The open files and models of reranking (rerank_open.c). */
struct smalti_reranker {
	const struct smalti_index *index;
	struct smalti_session *session;
	struct smalti_rerank_options options;
	struct smalti_features *features;
	struct smalti_features_info info; /* of the features */
	const char *directory;            /* directory of the features */
	struct smalti_model *model;
	enum smalti_cleaning cleaning; /* of texts, like the index's captions */
	struct smalti_queue queue;
	struct smalti_texts *texts;
	const struct smalti_text *empty;
	struct smalti_error broken; /* the first failure of a job */
	int64_t done, total;        /* forwards */
};

/* Returns timestep number `number`. */
int64_t smalti_rerank_timestep(const struct smalti_reranker *reranker, int64_t number);
