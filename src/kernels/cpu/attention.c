/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/attention_parts.h"

#include <math.h>

/* All data is transposed, a lane per query: Qᵀ [head_dim, queries], scores Sᵀ [keys, queries], result Oᵀ
 * [head_dim, queries]. Then maxima, sums and rescaling need no work across lanes, and both products have one
 * form: elements of a column of keys (or of values), broadcast one at a time, times vectors of queries. A
 * tile is ROWS × up to VECS vectors: as many sums as registers hold.
 *
 * Per head, Qᵀ is packed once. Then per span of keys, K and V are packed (f32, in panels that products read
 * from end to end), and per tile of queries: Sᵀ = K·Qᵀ, P = 2^(S − max), Oᵀ = Oᵀ·2^(old max − max) + Vᵀ·P. Q
 * includes a factor of log2 e, as 2^x is cheaper than e^x. The partition into spans and tiles depends on the
 * shape alone. */
#if VEC_BYTES == 64
enum { ROWS = 8, VECS = 3 };
#elif VEC_BYTES == 32
enum { ROWS = 4, VECS = 3 };
#else
enum { ROWS = 4, VECS = 2 };
#endif

/* Keys of a span: the scores of a tile stay in the first cache, as do the queries of DEPTH columns. */
enum { KEYS = 128, DEPTH = 96 };
/* Values are padded to a multiple of this. */
enum { VALUES = 8 };

/* The running state of one head in working memory: a float of each per padded query, then values per tile of
 * queries [padded head_dim, tile]. */
struct head_state {
	float *max, *sum, *values;
};

struct work {
	float *queries; /* Qᵀ, per tile [head_dim, tile] */
	float *keys;    /* in panels [head_dim, LANES] of LANES keys */
	float *values;  /* in panels [KEYS, LANES] of LANES columns */
	float *scores;  /* [KEYS, tile] */
	float *bias;    /* of query i and the span's key j: bias[i − j + keys − 1] */
	float *state;   /* of one head */
};

INLINE int64_t padded_values(const struct smalti_attention *a)
{
	return smalti_round_up(a->head_dim, VALUES);
}

/* Cuts the scratch into its parts; returns the floats needed. With a NULL scratch it only counts. */
static int64_t lay_out(const struct smalti_attention *a, float *scratch, struct work *work)
{
	const int64_t queries = padded_queries(a);
	const struct part parts[] = {
	    {&work->queries, queries * a->head_dim},
	    {&work->keys, KEYS * a->head_dim},
	    {&work->values, KEYS * smalti_round_up(a->head_dim, LANES)},
	    {&work->scores, KEYS * VECS * LANES},
	    {&work->bias, a->bias ? queries + KEYS : 0},
	    {&work->state, queries * (2 + padded_values(a))},
	};
	return workspace_layout(scratch, parts, sizeof(parts) / sizeof(parts[0]));
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

/* Computes c[r, q] = factor[q]·c[r, q] + Σ_k a[r, k]·b[k, q] for `rows` (a multiple of ROWS) rows; `a` lies
 * in panels [depth, LANES] of LANES rows each, `panel` floats apart; b and c have `vecs` vectors a row.
 * Without `factor` c is only written. */
INLINE void product(const int vecs, int64_t rows, int64_t depth, const float *a, int64_t panel,
		    const float *b, const float *factor, float *c, struct prefetch *prefetch)
{
	for (int64_t row = 0; row < rows; row += ROWS, c += ROWS * vecs * LANES) {
		vec sums[ROWS][VECS];
		prefetch_some(prefetch);
		UNROLL
		for (int r = 0; r < ROWS; r++) {
			UNROLL
			for (int v = 0; v < vecs; v++) {
				const float *at = c + (r * vecs + v) * LANES;
				sums[r][v] = factor ? vec_load(at) * vec_load(factor + v * LANES) : (vec){0};
			}
		}
		const float *left = a + row / LANES * panel + row % LANES, *right = b;
		for (int64_t k = 0; k < depth; k++, left += LANES, right += vecs * LANES) {
			vec lanes[VECS];
			UNROLL
			for (int v = 0; v < vecs; v++)
				lanes[v] = vec_load(right + v * LANES);
			UNROLL
			for (int r = 0; r < ROWS; r++) {
				vec element = vec_set1(left[r]);
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

INLINE void add_bias(const int vecs, int64_t keys, const float *bias, float *scores)
{
	for (int64_t key = 0; key < keys; key++, scores += vecs * LANES) {
		UNROLL
		for (int v = 0; v < vecs; v++)
			vec_store(scores + v * LANES,
				  vec_load(scores + v * LANES) + vec_load(bias - key + v * LANES));
	}
}

/* Finds the largest of each query's scores and of `max`; two chains of comparisons are twice as fast as one.
 */
INLINE void largest_of(const int vecs, int64_t keys, const float *scores, const float *max, vec largest[VECS])
{
	vec odd[VECS];
	UNROLL
	for (int v = 0; v < vecs; v++)
		largest[v] = odd[v] = vec_load(max + v * LANES);
	for (int64_t key = 0; key < keys; key += 2, scores += 2 * vecs * LANES) {
		const float *next = key + 1 < keys ? scores + vecs * LANES : scores;
		UNROLL
		for (int v = 0; v < vecs; v++) {
			largest[v] = vec_max(vec_load(scores + v * LANES), largest[v]);
			odd[v] = vec_max(vec_load(next + v * LANES), odd[v]);
		}
	}
	UNROLL
	for (int v = 0; v < vecs; v++)
		largest[v] = vec_max(odd[v], largest[v]);
}

/* Makes weights of the scores [keys, vecs vectors], and updates `max` and `sum`; `factor` becomes the factor
 * of earlier sums. */
INLINE void softmax(const int vecs, int64_t keys, float *scores, float *max, float *sum, float *factor)
{
	vec largest[VECS], origin[VECS], total[VECS] = {{0}};
	largest_of(vecs, keys, scores, max, largest);
	/* No key yet with any weight: 2^(-inf - 0) is 0, where 2^(-inf + inf) were NaN. */
	UNROLL
	for (int v = 0; v < vecs; v++)
		origin[v] = vec_select(largest[v] == -INFINITY, vec_set1(0.f), largest[v]);
	for (int64_t key = 0; key < keys; key++, scores += vecs * LANES) {
		UNROLL
		for (int v = 0; v < vecs; v++) {
			vec weight = vec_exp2(vec_load(scores + v * LANES) - origin[v]);
			vec_store(scores + v * LANES, weight);
			total[v] += weight;
		}
	}
	UNROLL
	for (int v = 0; v < vecs; v++) {
		const int at = v * LANES;
		vec rescale = vec_exp2(vec_load(max + at) - origin[v]);
		vec_store(max + at, largest[v]);
		vec_store(sum + at, vec_fma(vec_load(sum + at), rescale, total[v]));
		vec_store(factor + at, rescale);
	}
}

/* Computes one tile of queries with one span of keys: Qᵀ of the tile, its part of the state, its biases. */
INLINE void tile(const int vecs, const struct smalti_attention *a, const struct work *work,
		 const float *queries, const struct head_state *state, int64_t keys, const float *bias,
		 struct prefetch *prefetch)
{
	static const float ones[VECS * LANES] = {[0 ... VECS * LANES - 1] = 1};
	float factor[VECS * LANES];
	for (int64_t d = 0; d < a->head_dim; d += DEPTH)
		product(vecs, smalti_round_up(keys, ROWS), smalti_min(a->head_dim - d, DEPTH),
			work->keys + d * LANES, a->head_dim * LANES, queries + d * vecs * LANES,
			d ? ones : NULL, work->scores, prefetch);
	if (bias)
		add_bias(vecs, keys, bias, work->scores);
	softmax(vecs, keys, work->scores, state->max, state->sum, factor);
	product(vecs, smalti_round_up(a->head_dim, ROWS), keys, work->values, KEYS * LANES, work->scores,
		factor, state->values, prefetch);
}

/* Returns the vectors of the tile at `vector` of `vectors`, in nearly equal tiles. */
INLINE int tile_vecs(int64_t vector, int64_t vectors)
{
	int64_t tiles = (vectors - vector + VECS - 1) / VECS;
	return (int)((vectors - vector + tiles - 1) / tiles);
}

/* Returns the part of a head's state for the queries from `query` on. */
INLINE struct head_state state_at(const struct smalti_attention *a, const struct head_state *state,
				  int64_t query)
{
	return (struct head_state){state->max + query, state->sum + query,
				   state->values + query * padded_values(a)};
}

static void all_tiles(const struct smalti_attention *a, const struct work *work,
		      const struct head_state *state, int64_t keys, const float *bias,
		      struct prefetch *prefetch)
{
	int64_t vectors = padded_queries(a) / LANES;
	for (int64_t vector = 0, vecs; vector < vectors; vector += vecs) {
		vecs = tile_vecs(vector, vectors);
		const int64_t query = vector * LANES;
		const float *q = work->queries + query * a->head_dim, *added = bias ? bias + query : NULL;
		const struct head_state part = state_at(a, state, query);
		if (vecs == 1)
			tile(1, a, work, q, &part, keys, added, prefetch);
		else if (vecs == 2)
			tile(2, a, work, q, &part, keys, added, prefetch);
		else
			tile(VECS, a, work, q, &part, keys, added, prefetch);
	}
}

/* Counts the calls of prefetch_some(). */
static int64_t count_products(const struct smalti_attention *a, int64_t keys)
{
	const int64_t tiles = (padded_queries(a) / LANES + VECS - 1) / VECS;
	const int64_t scores = (keys + ROWS - 1) / ROWS * ((a->head_dim + DEPTH - 1) / DEPTH);
	return tiles * (scores + (a->head_dim + ROWS - 1) / ROWS);
}

/* Makes f16's infinity NaN; see kernels/attention.h. */
INLINE vec without_infinity(const enum smalti_dtype dtype, vec value)
{
	return dtype == SMALTI_F16 ? vec_fma(value, vec_set1(0), value) : value;
}

/* Packs at most LANES rows, scaled and transposed: to[d·step + lane]; further lanes repeat the last row. */
INLINE void pack_vector(const enum smalti_dtype dtype, const void *from, int64_t stride, int64_t rows,
			int64_t dim, float scale, int64_t step, float *to)
{
	for (int64_t d = 0; d < dim; d += LANES) {
		vec lanes[LANES];
		UNROLL
		for (int i = 0; i < LANES; i++) {
			vec row = vec_read(dtype, from, smalti_min(i, rows - 1) * stride + d, dim - d);
			lanes[i] = without_infinity(dtype, row) * scale;
		}
		vec_transpose(lanes);
		UNROLL
		for (int i = 0; i < LANES; i++)
			if (d + i < dim)
				vec_store(to + (d + i) * step, lanes[i]);
	}
}

static void pack_rows(const struct smalti_attention *a, const void *from, int64_t stride, int64_t rows,
		      float scale, int64_t step, float *to)
{
	FOR_DTYPE(a->dtype, pack_vector, from, stride, rows, a->head_dim, scale, step, to);
}

/* Packs Qᵀ of one head, in tiles. */
static void pack_queries(const struct smalti_attention *a, const void *q, float *packed)
{
	int64_t vectors = padded_queries(a) / LANES;
	for (int64_t vector = 0, vecs; vector < vectors; vector += vecs) {
		vecs = tile_vecs(vector, vectors);
		float *to = packed + vector * LANES * a->head_dim;
		for (int64_t v = 0; v < vecs; v++) {
			int64_t query = smalti_min((vector + v) * LANES, a->queries - 1);
			pack_rows(a, row_at(a, q, query, a->q_stride, 0), a->q_stride, a->queries - query,
				  a->scale * LOG2E, vecs * LANES, to + v * LANES);
		}
	}
}

static void pack_keys(const struct smalti_attention *a, const void *k, int64_t keys, float *packed)
{
	for (int64_t key = 0; key < keys; key += LANES)
		pack_rows(a, row_at(a, k, key, a->k_stride, 0), a->k_stride, keys - key, 1, LANES,
			  packed + key * a->head_dim);
}

static void pack_values(const struct smalti_attention *a, const void *v, int64_t keys, float *packed)
{
	for (int64_t key = 0; key < keys; key++)
		for (int64_t d = 0; d < a->head_dim; d += LANES)
			vec_store(packed + d * KEYS + key * LANES,
				  vec_read(a->dtype, v, key * a->v_stride + d, a->head_dim - d));
}

static void start(const struct smalti_attention *a, const struct head_state *state)
{
	int64_t queries = padded_queries(a);
	for (int64_t query = 0; query < queries; query++)
		state->max[query] = -INFINITY;
	memset(state->sum, 0, (size_t)queries * sizeof(float));
	memset(state->values, 0, (size_t)(queries * padded_values(a)) * sizeof(float));
}

static void move_state(const struct smalti_attention *a, const struct head_state *state, int64_t head,
		       bool out, float *outside)
{
	int64_t vectors = padded_queries(a) / LANES;
	for (int64_t vector = 0, vecs; vector < vectors && vector * LANES < a->queries; vector += vecs) {
		vecs = tile_vecs(vector, vectors);
		const int64_t query = vector * LANES, count = smalti_min(a->queries - query, vecs * LANES);
		const struct head_state part = state_at(a, state, query);
		const struct travelling rows = travelling_at(a, outside, head, query);
		move(out, part.max, rows.origin, count);
		move(out, part.sum, rows.sum, count);
		for (int64_t d = 0; d < a->head_dim; d++)
			move(out, part.values + d * vecs * LANES, rows.values + d * a->queries, count);
	}
}

static void finish(const struct smalti_attention *a, const struct head_state *state, int64_t head, void *y)
{
	int64_t vectors = padded_queries(a) / LANES;
	for (int64_t vector = 0, vecs; vector < vectors; vector += vecs) {
		vecs = tile_vecs(vector, vectors);
		const struct head_state part = state_at(a, state, vector * LANES);
		for (int64_t v = 0; v < vecs; v++)
			finish_vector(a, part.values + v * LANES, vecs * LANES,
				      vec_load(part.sum + v * LANES), (vector + v) * LANES,
				      head * a->head_dim, y);
	}
	if (a->lse)
		finish_lse(a->queries, state->max, state->sum, a->lse + head * a->queries);
}

static void attend_head(const struct smalti_attention *a, const struct work *work, const struct operands *o,
			int64_t head, const struct head_state *state)
{
	pack_queries(a, row_at(a, o->q, 0, a->q_stride, head), work->queries);
	struct span span = next_span(a, o->blocks, KEYS, (struct span){0});
	for (; span.keys; span = next_span(a, o->blocks, KEYS, span)) {
		struct prefetch prefetch = next_rows(a, o, head, span, KEYS, count_products(a, span.keys));
		if (a->bias)
			pack_bias(a, head, &span, work->bias);
		pack_keys(a, span_keys(a, o->blocks, &span, head), span.keys, work->keys);
		pack_values(a, span_values(a, o->blocks, &span, head), span.keys, work->values);
		all_tiles(a, work, state, span.keys, a->bias ? work->bias + span.keys - 1 : NULL, &prefetch);
	}
}

void FOR_ISA(smalti_attention)(const struct smalti_attention *attention, const void *q,
			       const struct smalti_keys *blocks, float *state, void *y, float *scratch)
{
#if defined(__AVX512BF16__)
	if (attention->dtype == SMALTI_BF16) {
		FOR_ISA(smalti_attention_bf16)(attention, q, blocks, state, y, scratch);
		return;
	}
#endif
	const struct operands operands = {q, blocks, attention->last ? y : NULL};
	const int64_t queries = padded_queries(attention);
	struct work work;
	lay_out(attention, scratch, &work);
	const struct head_state parts = {work.state, work.state + queries, work.state + 2 * queries};
	for (int64_t head = 0; head < attention->heads; head++) {
		start(attention, &parts);
		if (!attention->first)
			move_state(attention, &parts, head, false, state);
		attend_head(attention, &work, &operands, head, &parts);
		if (attention->last)
			finish(attention, &parts, head, y);
		else
			move_state(attention, &parts, head, true, state);
	}
}
