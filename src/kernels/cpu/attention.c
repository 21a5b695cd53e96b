/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/attention_parts.h"

#include <math.h>

/* Everything is kept transposed, a lane per query: Qᵀ [head_dim, queries], scores Sᵀ [keys, queries],
 * result Oᵀ [head_dim, queries]. Then maxima, sums and rescaling need no work across lanes, and both
 * products are the same: rows of K (or columns of V) broadcast one element at a time, times vectors
 * of queries. A tile is ROWS × up to VECS vectors: as many sums as registers hold.
 *
 * Per head: Qᵀ is packed once; then per sub-block of keys, K and V are copied (contiguous, f32, padded
 * with zeros to ROWS), and per tile of queries: Sᵀ = K·Qᵀ, P = 2^(S − max), Oᵀ = Oᵀ·2^(old max − max) +
 * Vᵀ·P. Scores carry a factor of log2 e, folded into Q, as 2^x is cheaper than e^x. The partition into
 * sub-blocks and tiles depends on the shape alone. */
#if VEC_BYTES == 64
enum { ROWS = 8, VECS = 3 };
#elif VEC_BYTES == 32
enum { ROWS = 4, VECS = 3 };
#else
enum { ROWS = 4, VECS = 2 };
#endif

/* Keys of a sub-block: the scores of a tile stay in the first cache. */
enum { KEYS = 128 };
enum { AHEAD = 16 };
/* Values are padded to a multiple of this. */
enum { VALUES = 8 };

/* The running state of one head: a float of each per padded query, then values per tile of queries
 * [padded head_dim, tile]. */
struct head_state {
	float *max, *sum, *values;
};

struct work {
	float *queries; /* Qᵀ, per tile [head_dim, tile] */
	float *keys;    /* [KEYS, stride] */
	float *values;  /* [KEYS, stride] */
	float *scores;  /* [KEYS, tile] */
	float *bias;    /* of query i and key j: bias[i − j + keys − 1] */
	float *state;   /* of one head, when the caller keeps none */
	int64_t stride; /* of keys and values; an odd number of cache lines */
};

INLINE int64_t padded_values(const struct smalti_attention *a)
{
	return round_up(a->head_dim, VALUES);
}

/* Cuts the scratch into its parts; the floats needed. With a NULL scratch only counts. */
static int64_t lay_out(const struct smalti_attention *a, float *scratch, struct work *work)
{
	work->stride = (round_up(a->head_dim, 16) / 16 | 1) * 16;
	const struct part parts[] = {
	    {&work->queries, padded_queries(a) * a->head_dim},
	    {&work->keys, KEYS * work->stride},
	    {&work->values, KEYS * work->stride},
	    {&work->scores, KEYS * VECS * LANES},
	    {&work->bias, a->bias ? padded_queries(a) + a->keys : 0},
	    {&work->state, a->first && a->last ? head_state_floats(a) : 0},
	};
	return carve(scratch, parts, sizeof(parts) / sizeof(parts[0]));
}

int64_t FOR_ISA(smalti_attention_scratch)(const struct smalti_attention *attention)
{
#if defined(__AVX512BF16__)
	if (attention->dtype == SMALTI_BF16)
		return FOR_ISA(smalti_attention_bf16_scratch)(attention);
#endif
	struct work work;
	return lay_out(attention, NULL, &work);
}

/* c[r, q] = factor[q]·c[r, q] + Σ_k A(r, k)·b[k, q] for `rows` (a multiple of ROWS) rows; A(r, k) is
 * a[r·a_row + k·a_step]; b and c have `vecs` vectors a row. Without `factor` c is only written. */
INLINE void product(const int vecs, int64_t rows, int64_t depth, const float *a, int64_t a_row,
		    int64_t a_step, const float *b, const float *factor, float *c)
{
	for (int64_t row = 0; row < rows; row += ROWS, a += ROWS * a_row, c += ROWS * vecs * LANES) {
		vec sums[ROWS][VECS];
		UNROLL
		for (int r = 0; r < ROWS; r++) {
			UNROLL
			for (int v = 0; v < vecs; v++) {
				const float *at = c + (r * vecs + v) * LANES;
				sums[r][v] = factor ? vec_load(at) * vec_load(factor + v * LANES) : (vec){0};
			}
		}
		const float *left = a, *right = b;
		for (int64_t k = 0; k < depth; k++, left += a_step, right += vecs * LANES) {
			vec lanes[VECS];
			UNROLL
			for (int v = 0; v < vecs; v++)
				lanes[v] = vec_load(right + v * LANES);
			UNROLL
			for (int r = 0; r < ROWS; r++) {
				vec element = vec_all(left[r * a_row]);
				UNROLL
				for (int v = 0; v < vecs; v++)
					sums[r][v] = vec_fma(element, lanes[v], sums[r][v]);
			}
		}
		UNROLL
		for (int r = 0; r < ROWS; r++) {
			UNROLL
			for (int v = 0; v < vecs; v++)
				vec_store(c + (r * vecs + v) * LANES, sums[r][v]);
		}
	}
}

/* One vector of queries: scores [keys, vecs vectors] become weights; `max` and `sum` are brought up to
 * date; `factor` is what earlier sums have to be multiplied with. */
INLINE void softmax(int64_t keys, int64_t row, float *scores, const float *bias, float *max, float *sum,
		    float *factor)
{
	vec old = vec_load(max), largest = old;
	for (int64_t key = 0; key < keys; key++) {
		float *at = scores + key * row;
		if (bias)
			vec_store(at, vec_load(at) + vec_load(bias - key));
		largest = vec_max(vec_load(at), largest);
	}
	/* No key yet with any weight: 2^(-inf - 0) is 0, where 2^(-inf + inf) were NaN. */
	vec origin = vec_select(largest == -INFINITY, vec_all(0.f), largest);
	vec total = {0};
	for (int64_t key = 0; key < keys; key++) {
		float *at = scores + key * row;
		vec weight = vec_exp2(vec_load(at) - origin);
		vec_store(at, weight);
		total += weight;
	}
	vec rescale = vec_exp2(old - origin);
	vec_store(max, largest);
	vec_store(sum, vec_fma(vec_load(sum), rescale, total));
	vec_store(factor, rescale);
}

/* One tile of queries, the first of them `query`, against one sub-block of keys. */
INLINE void tile(const int vecs, const struct smalti_attention *a, const struct work *work,
		 const struct head_state *state, int64_t query, int64_t keys, const float *bias)
{
	float factor[VECS * LANES];
	int64_t row = vecs * LANES;
	product(vecs, round_up(keys, ROWS), a->head_dim, work->keys, work->stride, 1,
		work->queries + query * a->head_dim, NULL, work->scores);
	for (int v = 0; v < vecs; v++) {
		int64_t at = query + v * LANES;
		softmax(keys, row, work->scores + v * LANES, bias ? bias + at : NULL, state->max + at,
			state->sum + at, factor + v * LANES);
	}
	product(vecs, round_up(a->head_dim, ROWS), keys, work->values, 1, work->stride, work->scores, factor,
		state->values + query * padded_values(a));
}

/* Vectors of the tile at `vector` of `vectors`: as even as can be. */
INLINE int tile_vecs(int64_t vector, int64_t vectors)
{
	int64_t tiles = (vectors - vector + VECS - 1) / VECS;
	return (int)((vectors - vector + tiles - 1) / tiles);
}

static void all_tiles(const struct smalti_attention *a, const struct work *work,
		      const struct head_state *state, int64_t keys, const float *bias)
{
	int64_t vectors = padded_queries(a) / LANES;
	for (int64_t vector = 0, vecs; vector < vectors; vector += vecs) {
		vecs = tile_vecs(vector, vectors);
		if (vecs == 1)
			tile(1, a, work, state, vector * LANES, keys, bias);
		else if (vecs == 2)
			tile(2, a, work, state, vector * LANES, keys, bias);
		else
			tile(VECS, a, work, state, vector * LANES, keys, bias);
	}
}

/* One vector of queries, scaled and transposed: to[d·row + lane]. */
static void pack_vector(const struct smalti_attention *a, const void *q, int64_t column, int64_t query,
			int64_t row, float *to)
{
	float scale = a->scale * LOG2E;
	for (int64_t d = 0; d < a->head_dim; d += LANES) {
		vec rows[LANES] = {0};
		for (int i = 0; i < LANES && query + i < a->queries; i++) {
			int64_t at = (query + i) * a->q_stride + column + d;
			rows[i] = vec_read(a->dtype, q, at, a->head_dim - d) * scale;
		}
		vec_transpose(rows);
		for (int i = 0; i < LANES && d + i < a->head_dim; i++)
			vec_store(to + (d + i) * row, rows[i]);
	}
}

/* Qᵀ of one head, in tiles. */
static void pack_queries(const struct smalti_attention *a, const void *q, int64_t column, float *packed)
{
	int64_t vectors = padded_queries(a) / LANES;
	for (int64_t vector = 0, vecs; vector < vectors; vector += vecs) {
		vecs = tile_vecs(vector, vectors);
		float *to = packed + vector * LANES * a->head_dim;
		for (int64_t v = 0; v < vecs; v++)
			pack_vector(a, q, column, (vector + v) * LANES, vecs * LANES, to + v * LANES);
	}
}

/* Some keys (or values) of one head, f32, zeros up to a multiple of ROWS both ways. Rows lie pages
 * apart, where the hardware does not look ahead: so we do. */
static void pack_keys(const struct smalti_attention *a, const void *from, int64_t key, int64_t keys,
		      int64_t from_stride, int64_t column, int64_t stride, float *packed)
{
	for (int64_t i = 0; i < keys; i++, packed += stride) {
		int64_t at = (key + i) * from_stride + column;
		int64_t ahead = (smaller(key + i + AHEAD, a->keys - 1) * from_stride + column) *
				smalti_dtype_bytes(a->dtype);
		for (int64_t d = 0; d < a->head_dim; d += LANES) {
			__builtin_prefetch((const char *)from + ahead + d * smalti_dtype_bytes(a->dtype));
			vec_store(packed + d, vec_read(a->dtype, from, at + d, a->head_dim - d));
		}
	}
	memset(packed, 0, (size_t)((round_up(keys, ROWS) - keys) * stride) * sizeof(float));
}

static void start(const struct smalti_attention *a, const struct head_state *state)
{
	int64_t queries = padded_queries(a);
	for (int64_t query = 0; query < queries; query++)
		state->max[query] = -INFINITY;
	memset(state->sum, 0, (size_t)queries * sizeof(float));
	memset(state->values, 0, (size_t)(queries * padded_values(a)) * sizeof(float));
}

static void finish(const struct smalti_attention *a, const struct head_state *state, int64_t column, void *y)
{
	int64_t vectors = padded_queries(a) / LANES;
	for (int64_t vector = 0, vecs; vector < vectors; vector += vecs) {
		vecs = tile_vecs(vector, vectors);
		const float *from = state->values + vector * LANES * padded_values(a);
		for (int64_t v = 0; v < vecs; v++) {
			int64_t query = (vector + v) * LANES;
			finish_vector(a, from + v * LANES, vecs * LANES, vec_load(state->sum + query), query,
				      column, y);
		}
	}
}

static void attend_head(const struct smalti_attention *a, const struct work *work, int64_t head,
			const void *q, const void *k, const void *v, const struct head_state *state)
{
	int64_t column = head * a->head_dim;
	pack_queries(a, q, column, work->queries);
	if (a->bias)
		pack_bias(a, head, work->bias);
	for (int64_t key = 0; key < a->keys; key += KEYS) {
		int64_t keys = smaller(a->keys - key, KEYS);
		pack_keys(a, k, key, keys, a->k_stride, column, work->stride, work->keys);
		pack_keys(a, v, key, keys, a->v_stride, column, work->stride, work->values);
		all_tiles(a, work, state, keys, a->bias ? work->bias + a->keys - 1 - key : NULL);
	}
}

void FOR_ISA(smalti_attention)(const struct smalti_attention *attention, const void *q, const void *k,
			       const void *v, float *state, void *y, float *scratch)
{
#if defined(__AVX512BF16__)
	if (attention->dtype == SMALTI_BF16) {
		FOR_ISA(smalti_attention_bf16)(attention, q, k, v, state, y, scratch);
		return;
	}
#endif
	struct work work;
	lay_out(attention, scratch, &work);
	int64_t queries = padded_queries(attention);
	for (int64_t head = 0; head < attention->heads; head++) {
		float *at = attention->first && attention->last ? work.state
								: state + head * head_state_floats(attention);
		struct head_state parts = {at, at + queries, at + 2 * queries};
		if (attention->first)
			start(attention, &parts);
		if (attention->keys)
			attend_head(attention, &work, head, q, k, v, &parts);
		if (attention->last)
			finish(attention, &parts, head * attention->head_dim, y);
	}
}
