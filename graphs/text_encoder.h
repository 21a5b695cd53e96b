/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/strategy/strategy.h"
#include "graphs/weights.h"

/* A model that makes hidden states of token ids, as the pipeline sees it: a table of functions, and the
 * extents that callers need. Another architecture has this as its model's first member, and its own table. */
struct smalti_text_encoder;

/* The tokens of a text. The last ones may be padding: no token attends to it, itself included. */
struct smalti_token_ids {
	const int32_t *ids;
	int64_t count;
	int64_t padding;
};

struct smalti_text_encoder_functions {
	void (*free)(struct smalti_text_encoder *encoder);

	/* Returns the most bytes that encoding `tokens` tokens together holds, besides weights. */
	int64_t (*working_bytes)(const struct smalti_text_encoder *encoder, int64_t tokens);
	/* Returns the most bytes of the mapped file that an encoding holds: all, or those of some layers when
	 * streamed. */
	int64_t (*mapped_bytes)(const struct smalti_text_encoder *encoder);
	/* Makes encodings give back the memory of a layer's weights behind their last use, and read the next
	 * layer ahead: for a file that exceeds the memory limit. */
	void (*stream)(struct smalti_text_encoder *encoder);

	/* Inserts the encoding. hidden[i] receives the hidden states f32 [count, width] of texts[i]'s tokens.
	 * Without padding they equal the reference's under its mask. Texts that are encoded together share
	 * every reading of the weights; each gets the same bits as alone. The layers' shards are spread over
	 * the strategy's places by their shares, each with its part of the weights; the rest is computed at
	 * the first place. The caller releases the tiles, which no place owns. */
	void (*encode)(struct smalti_text_encoder *encoder, struct smalti_task_group *task_group,
		       const struct smalti_token_ids *texts, int64_t count,
		       const struct smalti_strategy *strategy, struct smalti_tile **hidden);
};

struct smalti_text_encoder {
	const struct smalti_text_encoder_functions *functions;
	struct smalti_weights *weights;
	int64_t width, vocabulary;
	double token_flops;   /* the arithmetic of all matrices for a token */
	int64_t band_tokens;  /* most tokens of a task, unless a single text has more */
	int64_t task_weights; /* most bytes of weights that a device's task reads */
};

/* Accepts NULL. */
static inline void smalti_text_encoder_free(struct smalti_text_encoder *encoder)
{
	if (encoder)
		encoder->functions->free(encoder);
}
