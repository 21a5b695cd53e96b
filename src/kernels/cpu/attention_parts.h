/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_KERNELS_CPU_ATTENTION_PARTS_H
#define SMALTI_KERNELS_CPU_ATTENTION_PARTS_H

/* What the f32 and the bf16 form of attention share. */
#include "kernels/cpu/carve.h"
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/vector_math.h"

#define LOG2E 0x1.715476p0f

INLINE int64_t padded_queries(const struct smalti_attention *a)
{
	return round_up(a->queries, SMALTI_ATTENTION_QUERIES);
}

/* The floats of one head's state. */
INLINE int64_t head_state_floats(const struct smalti_attention *a)
{
	return padded_queries(a) * smalti_attention_state_values(a->head_dim);
}

/* Rows that come next, asked for while others are computed with: they lie pages apart, where the hardware
 * does not look ahead. */
struct ahead {
	struct {
		const char *rows;
		int64_t stride, count; /* in bytes */
	} part[4];
	int64_t row_bytes, row;
	int64_t rows_a_turn;
};

INLINE void add_ahead(struct ahead *ahead, int part, const struct smalti_attention *a, const void *rows,
		      int64_t stride, int64_t count)
{
	int64_t size = smalti_dtype_bytes(a->dtype);
	ahead->row_bytes = a->head_dim * size;
	ahead->part[part].rows = rows;
	ahead->part[part].stride = stride * size;
	ahead->part[part].count = count;
}

/* How many rows to ask for at each of `turns`. */
INLINE void spread_ahead(struct ahead *ahead, int64_t turns)
{
	int64_t most = 0;
	for (int i = 0; i < 4; i++)
		most = ahead->part[i].count > most ? ahead->part[i].count : most;
	ahead->rows_a_turn = (most + turns - 1) / turns;
}

INLINE void look_ahead(struct ahead *ahead)
{
	for (int64_t end = ahead->row + ahead->rows_a_turn; ahead->row < end; ahead->row++) {
		for (int i = 0; i < 4; i++) {
			if (ahead->row >= ahead->part[i].count)
				continue;
			const char *row = ahead->part[i].rows + ahead->row * ahead->part[i].stride;
			for (int64_t at = 0; at < ahead->row_bytes; at += 64)
				__builtin_prefetch(row + at, 0, 2);
		}
	}
}

/* The biases that this call needs of one head, in the order of queries: of query i and key j at
 * i − j + keys − 1. */
INLINE void pack_bias(const struct smalti_attention *a, int64_t head, float *packed)
{
	const float *bias = a->bias + head * a->bias_length;
	for (int64_t i = 0; i < padded_queries(a) + a->keys - 1; i++) {
		int64_t from = a->bias_origin + a->keys - 1 - i;
		packed[i] = i < a->queries + a->keys - 1 ? bias[from] * LOG2E : 0;
	}
}

/* One vector of queries, from[d·row + lane] / sum, transposed back; 0 where no key had any weight. */
INLINE void finish_vector(const struct smalti_attention *a, const float *from, int64_t row, vec sum,
			  int64_t query, int64_t column, void *y)
{
	ivec some = sum != 0.f;
	vec inverse = 1.f / sum;
	for (int64_t d = 0; d < a->head_dim; d += LANES) {
		vec rows[LANES] = {0};
		for (int i = 0; i < LANES && d + i < a->head_dim; i++)
			rows[i] = vec_select(some, vec_load(from + (d + i) * row) * inverse, (vec){0});
		vec_transpose(rows);
		for (int i = 0; i < LANES && query + i < a->queries; i++) {
			int64_t at = (query + i) * a->heads * a->head_dim + column + d;
			vec_write(a->dtype, y, at, a->head_dim - d, rows[i]);
		}
	}
}

#endif
