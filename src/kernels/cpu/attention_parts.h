/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Parts of both forms of attention, f32 and bf16. */
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/workspace.h"

#include <math.h>

#define LOG2E 0x1.715476p0f

/* Rounds up to a multiple of the widest vector. */
INLINE int64_t padded_queries(const struct smalti_attention *a)
{
	return smalti_round_up(a->queries, 16);
}

/* The states of one head's queries between calls (kernels/attention.h), from `query` on. */
struct travelling {
	float *origin, *sum, *values; /* values: rows of `queries` floats */
};

INLINE struct travelling travelling_at(const struct smalti_attention *a, float *state, int64_t head,
				       int64_t query)
{
	float *rows = state + head * (2 + a->head_dim) * a->queries + query;
	return (struct travelling){rows, rows + a->queries, rows + 2 * a->queries};
}

/* Moves floats out of the working memory, or into it. */
INLINE void move(bool out, float *own, float *outside, int64_t count)
{
	memcpy(out ? outside : own, out ? own : outside, (size_t)count * sizeof(float));
}

/* The keys of a block that are computed at a time. */
struct span {
	int64_t block, key; /* where they begin */
	int64_t first;      /* where they begin among all keys of the call */
	int64_t keys;       /* 0 behind the last block */
};

/* Returns the span after `span`: at most `max` keys. The first span follows one of zeros. */
INLINE struct span next_span(const struct smalti_attention *a, const struct smalti_keys *blocks, int64_t max,
			     struct span span)
{
	span.first += span.keys;
	span.key += span.keys;
	while (span.block < a->blocks && span.key == blocks[span.block].count) {
		span.block++;
		span.key = 0;
	}
	span.keys = span.block < a->blocks ? smalti_min(blocks[span.block].count - span.key, max) : 0;
	return span;
}

/* Returns one head's part of a row, among rows of `stride` elements. */
INLINE const void *row_at(const struct smalti_attention *a, const void *rows, int64_t row, int64_t stride,
			  int64_t head)
{
	return (const char *)rows + (row * stride + head * a->head_dim) * smalti_dtype_bytes(a->dtype);
}

INLINE const void *span_keys(const struct smalti_attention *a, const struct smalti_keys *blocks,
			     const struct span *span, int64_t head)
{
	return row_at(a, blocks[span->block].k, span->key, a->k_stride, head);
}

INLINE const void *span_values(const struct smalti_attention *a, const struct smalti_keys *blocks,
			       const struct span *span, int64_t head)
{
	return row_at(a, blocks[span->block].v, span->key, a->v_stride, head);
}

/* The rows of the next step, prefetched during this one: they lie pages apart, where the hardware does not
 * prefetch. */
struct prefetch {
	struct {
		const char *rows;
		int64_t stride, count; /* in bytes */
	} part[4];
	int parts, part_now;
	int64_t rows;               /* of all parts */
	int64_t row_bytes, row_now; /* and how many of these bytes are done */
	int64_t lines_per_call;
};

INLINE void prefetch_add(struct prefetch *prefetch, const struct smalti_attention *a, const void *rows,
			 int64_t stride, int64_t count)
{
	if (!count)
		return;
	prefetch->part[prefetch->parts].rows = rows;
	prefetch->part[prefetch->parts].stride = stride * smalti_dtype_bytes(a->dtype);
	prefetch->part[prefetch->parts++].count = count;
	prefetch->rows += count;
}

/* Prefetches a call's share of the cache lines. */
INLINE void prefetch_some(struct prefetch *prefetch)
{
	for (int64_t lines = prefetch->lines_per_call; lines && prefetch->part_now < prefetch->parts;
	     lines--) {
		__builtin_prefetch(prefetch->part[prefetch->part_now].rows + prefetch->row_now, 0, 2);
		prefetch->row_now += 64;
		if (prefetch->row_now < prefetch->row_bytes)
			continue;
		prefetch->row_now = 0;
		prefetch->part[prefetch->part_now].rows += prefetch->part[prefetch->part_now].stride;
		if (!--prefetch->part[prefetch->part_now].count)
			prefetch->part_now++;
	}
}

struct operands {
	const void *q;
	const struct smalti_keys *blocks;
	void *y; /* NULL when not last */
};

/* Lists what the next span needs, of this head or the next, and the rows of the result. */
static struct prefetch next_rows(const struct smalti_attention *a, const struct operands *o, int64_t head,
				 struct span span, int64_t max, int64_t turns)
{
	struct prefetch prefetch = {.row_bytes = a->head_dim * smalti_dtype_bytes(a->dtype)};
	const int64_t width = a->heads * a->head_dim;
	struct span next = next_span(a, o->blocks, max, span);
	const bool other_head = !next.keys;
	if (other_head)
		next = next_span(a, o->blocks, max, (struct span){0});
	const int64_t its_head = head + other_head;
	if (its_head < a->heads) {
		prefetch_add(&prefetch, a, span_keys(a, o->blocks, &next, its_head), a->k_stride, next.keys);
		prefetch_add(&prefetch, a, span_values(a, o->blocks, &next, its_head), a->v_stride,
			     next.keys);
		if (other_head)
			prefetch_add(&prefetch, a, row_at(a, o->q, 0, a->q_stride, its_head), a->q_stride,
				     a->queries);
	}
	if (other_head && o->y)
		prefetch_add(&prefetch, a, row_at(a, o->y, 0, width, head), width, a->queries);
	const int64_t lines = prefetch.rows * ((prefetch.row_bytes + 63) / 64);
	if (turns) /* none without queries; all is defined: the analyzer loses track of it */
		/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
		prefetch.lines_per_call = (lines + turns - 1) / turns;
	return prefetch;
}

/* Packs the biases of one span of keys in the order of queries: of query i and key j at i − j + keys − 1. */
INLINE void pack_bias(const struct smalti_attention *a, int64_t head, const struct span *span, float *packed)
{
	const float *bias = a->bias + head * a->bias_length;
	const int64_t last = a->bias_origin + span->first + span->keys - 1;
	for (int64_t i = 0; i < padded_queries(a) + span->keys - 1; i++)
		packed[i] = i < a->queries + span->keys - 1 ? bias[last - i] * LOG2E : 0;
}

/* Writes one vector of queries, from[d·row + lane] / sum, transposed back; 0 where no key had any weight. */
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

/* Computes lse of struct smalti_attention. */
static inline void finish_lse(int64_t queries, const float *origin, const float *sum, float *lse)
{
	for (int64_t i = 0; i < queries; i++)
		lse[i] = origin[i] + log2f(sum[i]);
}
