/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/attention.h"

#include "kernels/attention.h"

#include <math.h>

struct smalti_tile *smalti_attend(struct smalti_scope *scope, const struct smalti_heads *heads,
				  int64_t queries, struct smalti_tile *q, const struct smalti_cut *cut,
				  int64_t rows_per, struct smalti_tile *const *kv)
{
	const int64_t width = heads->count * heads->dim;
	struct smalti_tile *y = smalti_tile_new(scope, queries, width * smalti_dtype_bytes(heads->dtype));
	struct attention_arguments a = {.queries = queries,
					.heads = heads->count,
					.head_dim = heads->dim,
					.dtype = heads->dtype,
					.scale = (float)(1.0 / sqrt((double)heads->dim))};
	if (cut->bands == 1) {
		a.keys = smalti_cut_rows(cut, 0) * rows_per;
		smalti_insert_attention(scope, &(const struct attention_buffers){.q = q, .kv = kv[0], .y = y},
					&a);
		return y;
	}
	int64_t floats = smalti_attention_state(queries, heads->count, heads->dim);
	struct smalti_tile *state = smalti_tile_new(scope, 1, floats * (int64_t)sizeof(float));
	for (int64_t band = 0; band < cut->bands; band++) {
		a.keys = smalti_cut_rows(cut, band) * rows_per;
		if (band == 0)
			smalti_insert_attention_begin(
			    scope,
			    &(const struct attention_begin_buffers){.q = q, .kv = kv[band], .state = state},
			    &a);
		else if (band < cut->bands - 1)
			smalti_insert_attention_continue(scope,
							 &(const struct attention_continue_buffers){
							     .q = q, .kv = kv[band], .state = state},
							 &a);
		else
			smalti_insert_attention_end(scope,
						    &(const struct attention_end_buffers){
							.q = q, .kv = kv[band], .state = state, .y = y},
						    &a);
	}
	smalti_tile_release(state);
	return y;
}
