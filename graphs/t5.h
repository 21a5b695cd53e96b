/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_T5_H
#define SMALTI_GRAPHS_T5_H

#include "graphs/weights.h"
#include "io/config.h"

/* The T5 v1.1 encoder (specification 1.6, 2.2). */
struct smalti_t5;

/* NULL with an error that names the tensor that is missing or of another shape. */
struct smalti_t5 *smalti_t5_new(struct smalti_scope *scope, const struct smalti_t5_config *config,
				const struct smalti_checkpoint *checkpoint, enum smalti_dtype compute,
				struct smalti_error *error);
void smalti_t5_free(struct smalti_t5 *t5);
const struct smalti_t5_config *smalti_t5_config(const struct smalti_t5 *t5);
/* Bytes of the packed weights. */
int64_t smalti_t5_weight_bytes(const struct smalti_t5 *t5);

/* The hidden states f32 [count, width] of the real tokens only, which is exact under the mask. The
 * caller releases the tile. */
struct smalti_tile *smalti_t5_encode(struct smalti_t5 *t5, struct smalti_scope *scope, const int32_t *ids,
				     int64_t count);

#endif
