/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/attention_parts.h"
#include "kernels/cpu/tiles.h"

#include <math.h>

/* As in attention.c all data is transposed, a lane per query, but in tiles of bf16 operands: scores Sᵀ =
 * K·Qᵀ, weights P = 2^(S − max) rounded to bf16, result Oᵀ = Oᵀ·2^(old max − max) + Vᵀ·P. Vᵀ has one more
 * row, of ones, so that Oᵀ has the sums of the rounded weights. Sums are f32.
 *
 * Per head, Qᵀ is packed once. Then per sub-block of keys, K and Vᵀ are packed, and two tiles of queries at a
 * time go through both products. A weight is 2^(S − origin), where origin is the largest score when it last
 * moved: it moves only for much larger scores, as bf16 is as exact at 2^16 as at 1. */

/* Keys of a sub-block. */
enum { KEYS = 128, KEY_TILES = KEYS / TILE, KEY_STEPS = KEYS / TILE_TERMS };

struct work {
	float *queries; /* tiles b [tile of queries, step of head_dim] */
	float *keys;    /* tiles a [tile of keys, step of head_dim] */
	float *values;  /* tiles a [step of keys, tile of values] */
	float *scores;  /* tiles c [2 tiles of queries, tile of keys] */
	float *weights; /* tiles b [2 tiles of queries, step of keys] */
	float *bias;
	float *state; /* of one head */
};

/* The running state of one head in working memory: the origin per padded query, tiles c [tile of queries,
 * tile of values]; row head_dim of the values is the sum of weights. */
struct head_state {
	float *origin, *values;
};

INLINE int64_t depth_steps(const struct smalti_attention *a)
{
	return (a->head_dim + TILE_TERMS - 1) / TILE_TERMS;
}

INLINE int64_t value_tiles(const struct smalti_attention *a)
{
	return a->head_dim / TILE + 1;
}

static int64_t lay_out(const struct smalti_attention *a, float *scratch, struct work *work)
{
	const struct part parts[] = {
	    {&work->queries, padded_queries(a) / TILE * depth_steps(a) * TILE_FLOATS},
	    {&work->keys, KEY_TILES * depth_steps(a) * TILE_FLOATS},
	    {&work->values, KEY_STEPS * value_tiles(a) * TILE_FLOATS},
	    {&work->scores, 2 * KEY_TILES * TILE_FLOATS},
	    {&work->weights, 2 * KEY_STEPS * TILE_FLOATS},
	    {&work->bias, a->bias ? padded_queries(a) + KEYS : 0},
	    {&work->state, padded_queries(a) * (1 + value_tiles(a) * TILE)},
	};
	return workspace_layout(scratch, parts, sizeof(parts) / sizeof(parts[0]));
}

int64_t FOR_ISA(smalti_attention_bf16_scratch)(const struct smalti_attention *attention)
{
	struct work work;
	return lay_out(attention, NULL, &work);
}

/* Loads 32 elements of a row, zeros from `count` on. */
INLINE vec load_pairs(const uint16_t *from, int64_t count)
{
	__mmask32 mask = count >= TILE_TERMS ? UINT32_MAX : (1u << count) - 1;
	return (vec)_mm512_maskz_loadu_epi16(mask, from);
}

static void pack_queries(const struct smalti_attention *a, const uint16_t *q, float *packed)
{
	for (int64_t query = 0; query < padded_queries(a); query += TILE) {
		for (int64_t d = 0; d < a->head_dim; d += TILE_TERMS, packed += TILE_FLOATS) {
			vec rows[TILE] = {0};
			for (int i = 0; i < TILE && query + i < a->queries; i++)
				rows[i] = load_pairs(q + (query + i) * a->q_stride + d, a->head_dim - d);
			vec_transpose(rows);
			UNROLL
			for (int i = 0; i < TILE; i++)
				vec_store(packed + i * TILE, rows[i]);
		}
	}
}

static void pack_keys(const struct smalti_attention *a, const uint16_t *k, int64_t keys, float *packed)
{
	const int64_t steps = depth_steps(a);
	for (int64_t key = 0; key < smalti_round_up(keys, TILE); key++) {
		float *to = packed + key / TILE * steps * TILE_FLOATS + key % TILE * TILE;
		const uint16_t *from = k + key * a->k_stride;
		for (int64_t step = 0; step < steps; step++, to += TILE_FLOATS) {
			int64_t d = step * TILE_TERMS;
			vec_store(to, key < keys ? load_pairs(from + d, a->head_dim - d) : (vec){0});
		}
	}
}

/* Returns 16 values of an even key and of the next key, as pairs. */
INLINE vec interleave(const uint16_t *even, const uint16_t *odd, __mmask16 even_mask, __mmask16 odd_mask)
{
	static const uint16_t order[] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
					 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
	__m512i low = _mm512_maskz_loadu_epi16(even_mask, even),
		high = _mm512_maskz_loadu_epi16(odd_mask, odd);
	return (vec)_mm512_permutex2var_epi16(low, _mm512_loadu_si512(order), high);
}

/* Packs a tile a: `keys` keys from `v` on, at most 32, of `values` values, at most 16. */
static void pack_value_tile(const uint16_t *v, int64_t stride, int64_t keys, int64_t values, float *packed)
{
	const __mmask16 mask = (__mmask16)(values < TILE ? (1u << values) - 1 : UINT16_MAX);
	vec rows[TILE];
	for (int i = 0; i < TILE; i++, v += 2 * stride)
		rows[i] = interleave(v, v + stride, 2 * i < keys ? mask : 0, 2 * i + 1 < keys ? mask : 0);
	vec_transpose(rows);
	UNROLL
	for (int i = 0; i < TILE; i++)
		vec_store(packed + i * TILE, rows[i]);
}

/* Returns the row of ones, with zeros behind the keys. */
INLINE vec ones(int64_t keys)
{
	return load_pairs((const uint16_t[TILE_TERMS]){[0 ... TILE_TERMS - 1] = 0x3f80},
			  keys < TILE_TERMS ? keys : TILE_TERMS);
}

static void pack_values(const struct smalti_attention *a, const uint16_t *v, int64_t keys, float *packed)
{
	for (int64_t key = 0; key < keys; key += TILE_TERMS) {
		for (int64_t d = 0; d <= a->head_dim; d += TILE, packed += TILE_FLOATS) {
			if (d < a->head_dim)
				pack_value_tile(v + key * a->v_stride + d, a->v_stride, keys - key,
						a->head_dim - d, packed);
			if (a->head_dim - d < TILE)
				vec_store(packed + (a->head_dim - d) * TILE, ones(keys - key));
		}
	}
}

/* Computes c of `row_tiles` × `columns` tiles, two rows of tiles at a time. */
INLINE void product(int64_t row_tiles, const int columns, const bool add, struct tile_product p)
{
	for (int64_t row = 0; row < row_tiles; row += 2) {
		if (row + 1 < row_tiles)
			tiles_multiply(2, columns, add, &p);
		else
			tiles_multiply(1, columns, add, &p);
		p.a += 2 * p.a_row * TILE_FLOATS;
		p.c += 2 * p.c_row * TILE_FLOATS;
	}
}

/* Returns 2^f + 2^-8 for f in [0, 1), within 8e-5 (minimax): cut off after 8 bits, it is 2^f rounded. */
INLINE vec exp2_rounding(vec x)
{
	vec f = (vec)_mm512_reduce_ps((__m512)x, 1); /* from the integer below; 0 of infinity */
	vec p = vec_fma(f, vec_set1(0x1.3f96a4p-4f), vec_set1(0x1.cefc4cp-3f));
	p = vec_fma(p, f, vec_set1(0x1.64444cp-1f));
	p = vec_fma(p, f, vec_set1(0x1.fff632p-1f + 0x1p-8f));
	return (vec)_mm512_scalef_ps((__m512)p, (__m512)x);
}

/* Returns the weights of an even key (the low halves) and of the next. */
INLINE vec weigh(vec even, vec odd, vec scale, vec origin)
{
	uvec low = (uvec)exp2_rounding(vec_fma(even, scale, -origin)) >> 16;
	__m512i high = (__m512i)exp2_rounding(vec_fma(odd, scale, -origin));
	return (vec)_mm512_mask_mov_epi16((__m512i)low, 0xaaaaaaaa, high);
}

/* Applies scale and bias to the scores, which later need neither. */
static void add_bias(int64_t keys, float scale, const float *bias, float *scores)
{
	for (int64_t key = 0; key < keys; key++) {
		vec added = bias ? vec_load(bias - key) : (vec){0};
		vec_store(scores + key * TILE,
			  vec_fma(vec_load(scores + key * TILE), vec_set1(scale), added));
	}
}

INLINE vec largest_of(int64_t keys, const float *scores)
{
	vec largest[4];
	UNROLL
	for (int i = 0; i < 4; i++)
		largest[i] = vec_set1(-INFINITY);
	int64_t key = 0;
	for (; key + 4 <= keys; key += 4) {
		UNROLL
		for (int i = 0; i < 4; i++)
			largest[i] = vec_max(vec_load(scores + (key + i) * TILE), largest[i]);
	}
	for (; key < keys; key++)
		largest[0] = vec_max(vec_load(scores + key * TILE), largest[0]);
	return vec_max(vec_max(largest[0], largest[1]), vec_max(largest[2], largest[3]));
}

/* Moves the origin of one tile of queries, `at`, to the largest score, if that score's weight has reached
 * 2^16; then it rescales earlier values, unless there are none yet. Returns 0 where no key has had any
 * weight: 2^(-inf - 0) is 0, where 2^(-inf + inf) were NaN. */
INLINE vec move_origin(const struct smalti_attention *a, vec largest, float *at, bool fresh, float *values)
{
	vec old = vec_load(at);
	ivec grown = largest > old + 16.f;
	if (_mm512_movepi32_mask((__m512i)grown)) {
		vec origin = vec_select(grown, largest, old);
		vec factor = vec_select(grown, vec_exp2(old - origin), vec_set1(1));
		vec_store(at, origin);
		for (int64_t row = 0; row < value_tiles(a) * TILE && !fresh; row++)
			vec_store(values + row * TILE, vec_load(values + row * TILE) * factor);
		old = origin;
	}
	return vec_select(old == -INFINITY, vec_set1(0), old);
}

/* Makes the scores of one tile of queries weights in pairs, zeros up to a whole tile. */
INLINE void weigh_all(int64_t keys, float scale, vec origin, const float *scores, float *weights,
		      struct prefetch *prefetch)
{
	int64_t key = 0;
	for (; key + 2 <= keys; key += 2, scores += 2 * TILE, weights += TILE) {
		vec_store(weights, weigh(vec_load(scores), vec_load(scores + TILE), vec_set1(scale), origin));
		if (key % TILE == 0)
			prefetch_some(prefetch);
	}
	for (; key < smalti_round_up(keys, TILE_TERMS); key += 2, weights += TILE) {
		vec last =
		    key < keys ? vec_fma(vec_load(scores), vec_set1(scale), -origin) : vec_set1(-INFINITY);
		vec_store(weights, weigh(last, vec_set1(-INFINITY), vec_set1(1), vec_set1(0)));
	}
}

/* One sub-block of keys of one head. */
struct block {
	int64_t keys;
	bool fresh;        /* the first of all: there are no values yet */
	const float *bias; /* of query 0 and its first key, or NULL */
	struct prefetch prefetch;
};

/* Computes one or two tiles of queries, from `query` on. */
INLINE void attend_tiles(const int tiles, const struct smalti_attention *a, const struct work *work,
			 const struct head_state *state, int64_t query, struct block *block)
{
	const int64_t steps = depth_steps(a), values = value_tiles(a), keys = block->keys;
	const bool biased = block->bias || a->scale < 0;
	const float scale = a->scale * LOG2E;
	const struct tile_product scores = {
	    .terms = a->head_dim,
	    .a = work->keys,
	    .a_row = steps,
	    .a_step = 1,
	    .b = work->queries + query * steps * TILE,
	    .b_column = steps,
	    .b_step = 1,
	    .c = work->scores,
	    .c_row = 1,
	    .c_column = KEY_TILES,
	};
	product((keys + TILE - 1) / TILE, tiles, false, scores);
	for (int tile = 0; tile < tiles; tile++) {
		float *s = work->scores + tile * KEY_TILES * TILE_FLOATS;
		int64_t at = query + tile * TILE;
		if (biased)
			add_bias(keys, scale, block->bias ? block->bias + at : NULL, s);
		const float left = biased ? 1 : scale;
		vec origin = move_origin(a, largest_of(keys, s) * left, state->origin + at, block->fresh,
					 state->values + at * values * TILE);
		weigh_all(keys, left, origin, s, work->weights + tile * KEY_STEPS * TILE_FLOATS,
			  &block->prefetch);
	}
	const struct tile_product sums = {
	    .terms = keys,
	    .a = work->values,
	    .a_row = 1,
	    .a_step = values,
	    .b = work->weights,
	    .b_column = KEY_STEPS,
	    .b_step = 1,
	    .c = state->values + query * values * TILE,
	    .c_row = 1,
	    .c_column = values,
	};
	if (block->fresh)
		product(values, tiles, false, sums);
	else
		product(values, tiles, true, sums);
}

static void attend_head(const struct smalti_attention *a, const struct work *work, int64_t head,
			const struct operands *o, const struct head_state *state)
{
	pack_queries(a, row_at(a, o->q, 0, a->q_stride, head), work->queries);
	struct span span = next_span(a, o->blocks, KEYS, (struct span){0});
	for (; span.keys; span = next_span(a, o->blocks, KEYS, span)) {
		const int64_t turns = padded_queries(a) / TILE * ((span.keys + TILE - 1) / TILE);
		int64_t query = 0;
		struct block block = {
		    .keys = span.keys,
		    .fresh = a->first && span.first == 0,
		    .bias = a->bias ? work->bias + span.keys - 1 : NULL,
		    .prefetch = next_rows(a, o, head, span, KEYS, turns),
		};
		if (a->bias)
			pack_bias(a, head, &span, work->bias);
		pack_keys(a, span_keys(a, o->blocks, &span, head), span.keys, work->keys);
		pack_values(a, span_values(a, o->blocks, &span, head), span.keys, work->values);
		for (; query + TILE < padded_queries(a); query += 2 * TILE)
			attend_tiles(2, a, work, state, query, &block);
		if (query < padded_queries(a))
			attend_tiles(1, a, work, state, query, &block);
	}
}

static void start(const struct smalti_attention *a, const struct smalti_keys *blocks,
		  const struct head_state *state)
{
	int64_t queries = padded_queries(a);
	for (int64_t query = 0; query < queries; query++)
		state->origin[query] = -INFINITY;
	if (!a->first || !next_span(a, blocks, KEYS, (struct span){0}).keys)
		memset(state->values, 0, (size_t)(queries * value_tiles(a) * TILE) * sizeof(float));
}

static void move_state(const struct smalti_attention *a, const struct head_state *state, int64_t head,
		       bool out, float *outside)
{
	for (int64_t query = 0; query < a->queries; query += TILE) {
		const int64_t count = smalti_min(a->queries - query, TILE);
		float *values = state->values + query * value_tiles(a) * TILE;
		const struct travelling rows = travelling_at(a, outside, head, query);
		move(out, state->origin + query, rows.origin, count);
		move(out, values + a->head_dim * TILE, rows.sum, count);
		for (int64_t d = 0; d < a->head_dim; d++)
			move(out, values + d * TILE, rows.values + d * a->queries, count);
	}
}

static void finish(const struct smalti_attention *a, const struct head_state *state, int64_t head, void *y)
{
	for (int64_t query = 0; query < a->queries; query += TILE) {
		const float *from = state->values + query * value_tiles(a) * TILE;
		finish_vector(a, from, TILE, vec_load(from + a->head_dim * TILE), query, head * a->head_dim,
			      y);
		if (a->lse)
			finish_lse(smalti_min(a->queries - query, TILE), state->origin + query,
				   from + a->head_dim * TILE, a->lse + head * a->queries + query);
	}
}

void FOR_ISA(smalti_attention_bf16)(const struct smalti_attention *attention, const void *q,
				    const struct smalti_keys *blocks, float *state, void *y, float *scratch)
{
	const struct operands operands = {q, blocks, attention->last ? y : NULL};
	struct work work;
	lay_out(attention, scratch, &work);
	tiles_begin();
	const struct head_state parts = {work.state, work.state + padded_queries(attention)};
	for (int64_t head = 0; head < attention->heads; head++) {
		start(attention, blocks, &parts);
		if (!attention->first)
			move_state(attention, &parts, head, false, state);
		attend_head(attention, &work, head, &operands, &parts);
		if (attention->last)
			finish(attention, &parts, head, y);
		else
			move_state(attention, &parts, head, true, state);
	}
	tiles_end();
}
