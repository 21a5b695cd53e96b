/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_T5_H
#define SMALTI_GRAPHS_T5_H

#include "checkpoint/config.h"
#include "graphs/weights.h"

/* The T5 v1.1 encoder (docs/reference.md 1.6, 2.2). Its matrices are never packed: they are multiplied with
 * as the mapped file has them. */
struct smalti_t5;

/* NULL with an error that names the tensor that is missing or of another shape. */
struct smalti_t5 *smalti_t5_new(struct smalti_task_group *task_group, const struct smalti_t5_config *config,
				const struct smalti_checkpoint *checkpoint, enum smalti_dtype compute,
				struct smalti_error *error);
void smalti_t5_free(struct smalti_t5 *t5);
const struct smalti_t5_config *smalti_t5_config(const struct smalti_t5 *t5);
/* Bytes of the weights that are made: vectors only. */
int64_t smalti_t5_weight_bytes(const struct smalti_t5 *t5);
/* Bytes of the mapped file that an encoding holds at most: all, or some layers when streamed. */
int64_t smalti_t5_mapped_bytes(const struct smalti_t5 *t5);

/* The most that encoding `tokens` tokens together holds, besides weights. */
int64_t smalti_t5_working_bytes(const struct smalti_t5 *t5, int64_t tokens);

/* Arithmetic of all matrices for a token. */
double smalti_t5_token_flops(const struct smalti_t5 *t5);

/* From here on an encoding gives the memory of a layer's weights back behind their last use, and reads the
 * next layer ahead: for a file that does not fit under the memory limit. */
void smalti_t5_stream(struct smalti_t5 *t5);

/* The tokens of a text. */
struct smalti_words {
	const int32_t *ids;
	int64_t count;
};

/* hidden[i] receives the hidden states f32 [count, width] of captions[i]'s real tokens only, which is exact
 * under the mask. Captions that are encoded together share every reading of the weights; each gets the same
 * bits as alone. The caller releases the tiles. */
void smalti_t5_encode(struct smalti_t5 *t5, struct smalti_task_group *task_group,
		      const struct smalti_words *captions, int64_t count, struct smalti_tile **hidden);

#endif
