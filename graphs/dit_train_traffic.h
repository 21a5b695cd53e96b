/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/dit_train.h"

/* Bytes that come to one place for a sample's forward and backward, where a strategy places them; its planes
 * and its caption come from main memory, and go back there. What a place has is not sent again. */
struct smalti_train_traffic {
	double shards; /* inputs of heads and columns that other bands' homes make, and sums on their way over
			  the shards */
	double keys;   /* keys and values of other ranks' tokens, in the forward and where it is repeated */
	double gradients;  /* what other ranks have of the gradients of keys and values */
	double conditions; /* of timestep, caption and positions, and what ranks have of their gradients */
	double planes;     /* the noisy latents, the result, and its gradient */
};

/* Of a sample whose tokens lie so, with a caption of `text_tokens`, the first `recomputed` blocks repeated.
 */
struct smalti_train_traffic smalti_dit_train_traffic(const struct smalti_transformer_config *config,
						     enum smalti_dtype compute,
						     const struct smalti_dit_sample *sample, int place);

static inline double smalti_train_traffic_bytes(const struct smalti_train_traffic *t)
{
	return t->shards + t->keys + t->gradients + t->conditions + t->planes;
}
