/* SPDX-License-Identifier: Apache-2.0 */

/* A group has some queries of one head and goes through the keys, KEYS at a time, with an online softmax: the
 * scores are never whole in memory. LANES threads share a query: in products with the keys each has every
 * LANES-th key, in those with the values every LANES-th column, whose sums stay in its registers. Rows of
 * queries, keys and values come through local memory, DEPTH columns at a time. */
enum {
	QUERIES = SMALTI_ATTEND_QUERIES,
	LANES = SMALTI_ATTEND_THREADS / QUERIES,
	KEYS = 32,
	LANE_KEYS = KEYS / LANES,
	DEPTH = SMALTI_ATTEND_COLUMNS,
	LANE_COLUMNS = DEPTH / LANES,
	ROW = DEPTH + 1, /* floats from a row to the next: no two of a column in one bank */
	WIDE = 32        /* threads that copy a row together */
};

/* Which queries group number `group` has, `most` at most: of the caption that begins at token `begin` and has
 * `tokens`, those from `first` on; there may be groups without. */
struct share {
	int64_t head, begin, tokens, first;
};

DEVICE struct share share_of_group(int64_t group, int most, GLOBAL const int64_t *starts,
				   const struct attend_arguments *a)
{
	struct share share = {group % a->heads, 0, a->queries, group / a->heads * most};
	if (!starts)
		return share;
	for (int64_t i = 0; i < a->captions; i++) {
		share.begin = starts[i];
		share.tokens = starts[i + 1] - starts[i];
		if (share.first < share.tokens)
			return share;
		share.first -= (share.tokens + most - 1) / most * most;
	}
	share.first = share.tokens = 0;
	return share;
}

/* NaN where f16 has infinity; see kernels/attention.h. */
DEVICE float without_infinity(enum smalti_dtype dtype, float value)
{
	return dtype == SMALTI_F16 && fabs(value) == INFINITY ? NAN : value;
}

/* to[row][column] = `rows` × `columns` elements, times scale, and zeros up to `most` rows. */
DEVICE void load_rows(GLOBAL const void *x, enum smalti_dtype dtype, int64_t first, int64_t stride,
		      int64_t rows, int columns, float scale, int most, LOCAL float *to)
{
	for (int row = THREAD / WIDE; row < most; row += SMALTI_ATTEND_THREADS / WIDE)
		for (int column = THREAD % WIDE; column < columns; column += WIDE)
			to[row * ROW + column] =
			    row < rows ? without_infinity(dtype, load_element(x, dtype,
									      first + row * stride + column)) *
					     scale
				       : 0;
}

/* What a thread keeps of its query. */
struct running {
	float origin, sum, values[LANE_COLUMNS];
};

/* weights[query][key]: 2^(score − origin) of `keys` keys; the earlier sums have to be multiplied with what is
 * returned. */
DEVICE float soften(LOCAL float *weights, struct running *state)
{
	LOCAL float *row = weights + THREAD / LANES * (KEYS + 1);
	float largest = state->origin, total = 0;
	for (int key = 0; key < KEYS; key++)
		largest = fmax(largest, row[key]);
	/* No key yet with any weight: 2^(-inf − 0) is 0, where 2^(-inf + inf) were NaN. */
	const float origin = largest == -INFINITY ? 0 : largest;
	BARRIER();
	for (int key = THREAD % LANES; key < KEYS; key += LANES)
		row[key] = exp2(row[key] - origin);
	BARRIER();
	for (int key = 0; key < KEYS; key++)
		total += row[key];
	const float factor = exp2(state->origin - origin);
	state->origin = largest;
	state->sum = state->sum * factor + total;
	return factor;
}

/* The thread's scores of `keys` keys, in units of ln 2, into weights[query][key]; -inf beyond them. */
DEVICE void score(GLOBAL const void *q, int64_t q_first, int64_t queries, GLOBAL const void *kv,
		  int64_t k_first, int64_t keys, GLOBAL const float *bias, LOCAL float *left,
		  LOCAL float *right, LOCAL float *weights, const struct attend_arguments *a)
{
	const int query = THREAD / LANES, lane = THREAD % LANES;
	float sums[LANE_KEYS] = {0};
	for (int64_t d = 0; d < a->head_dim; d += DEPTH) {
		const int depth = (int)smaller(a->head_dim - d, DEPTH);
		load_rows(q, a->dtype, q_first + d, a->q_stride, queries, depth, a->scale * LOG2E, QUERIES,
			  left);
		load_rows(kv, a->dtype, k_first + d, a->kv_stride, keys, depth, 1, KEYS, right);
		BARRIER();
		for (int i = 0; i < depth; i++) {
			const float element = left[query * ROW + i];
			UNROLL
			for (int j = 0; j < LANE_KEYS; j++)
				sums[j] += element * right[(lane + j * LANES) * ROW + i];
		}
		BARRIER();
	}
	UNROLL
	for (int j = 0; j < LANE_KEYS; j++) {
		const int key = lane + j * LANES;
		const bool there = key < keys && query < queries;
		const float added = there && bias ? bias[key - query] * LOG2E : 0;
		weights[query * (KEYS + 1) + key] = there ? sums[j] + added : -INFINITY;
	}
	BARRIER();
}

/* The thread's sums of weighted values, of which the earlier ones are multiplied with `factor`. */
DEVICE void add_values(GLOBAL const void *kv, int64_t v_first, int64_t keys, float factor, LOCAL float *right,
		       LOCAL const float *weights, struct running *state, const struct attend_arguments *a)
{
	const int query = THREAD / LANES, lane = THREAD % LANES, columns = (int)a->columns;
	load_rows(kv, a->dtype, v_first, a->kv_stride, keys, columns, 1, KEYS, right);
	BARRIER();
	UNROLL
	for (int j = 0; j < LANE_COLUMNS; j++)
		state->values[j] *= factor;
	for (int key = 0; key < KEYS; key++) {
		const float weight = weights[query * (KEYS + 1) + key];
		UNROLL
		for (int j = 0; j < LANE_COLUMNS; j++)
			if (lane + j * LANES < columns)
				state->values[j] += weight * right[key * ROW + lane + j * LANES];
	}
	BARRIER();
}

/* The column of a head's values that is a thread's sum i. */
DEVICE int64_t column_of(int i, const struct attend_arguments *a)
{
	return a->first_column + i * LANES + THREAD % LANES;
}

/* The query's state as tasks hand it on, f32 [heads, 2 + head_dim, queries] (kernels/attention.h), to `state`
 * and from there. */
DEVICE void take_state(GLOBAL const float *from, const struct attend_arguments *a, struct running *state)
{
	state->origin = from[0];
	state->sum = from[a->queries];
	UNROLL
	for (int i = 0; i < LANE_COLUMNS; i++)
		if (column_of(i, a) < a->first_column + a->columns)
			state->values[i] = from[(2 + column_of(i, a)) * a->queries];
}

DEVICE void leave_state(const struct running *state, const struct attend_arguments *a, GLOBAL float *to)
{
	if (THREAD % LANES == 0 && a->first_column + a->columns == a->head_dim) {
		to[0] = state->origin;
		to[a->queries] = state->sum;
	}
	UNROLL
	for (int i = 0; i < LANE_COLUMNS; i++)
		if (column_of(i, a) < a->first_column + a->columns)
			to[(2 + column_of(i, a)) * a->queries] = state->values[i];
}

/* A query's columns of y, 0 where no key had any weight. */
DEVICE void finish(const struct running *state, const struct attend_arguments *a, int64_t at, GLOBAL void *y)
{
	const float inverse = state->sum != 0 ? 1.f / state->sum : 0;
	UNROLL
	for (int i = 0; i < LANE_COLUMNS; i++)
		if (column_of(i, a) < a->first_column + a->columns)
			store_element(y, a->y_dtype, at + column_of(i, a),
				      state->sum != 0 ? state->values[i] * inverse : 0);
}

/* Of the sum over all keys, by one of a query's threads. */
DEVICE void leave_lse(const struct running *state, const struct attend_arguments *a, GLOBAL float *lse)
{
	if (lse && THREAD % LANES == 0 && a->first_column + a->columns == a->head_dim)
		lse[0] = state->origin + log2(state->sum);
}

KERNEL(attend)(GLOBAL const void *q, MANY_PARAMETERS(const void, kv), GLOBAL const float *bias,
	       GLOBAL float *state, GLOBAL void *y, GLOBAL const int64_t *starts, GLOBAL float *lse,
	       struct attend_arguments a)
{
	LOCAL_ARRAY(float, left, QUERIES *ROW);
	LOCAL_ARRAY(float, right, KEYS *ROW);
	LOCAL_ARRAY(float, weights, QUERIES *(KEYS + 1));
	GLOBAL const void *const blocks[SMALTI_MANY] = MANY_VALUES(kv);
	const struct share share = share_of_group(GROUP, QUERIES, starts, &a);
	const int64_t queries = smaller(share.tokens - share.first, QUERIES), query = THREAD / LANES;
	const int64_t token = share.begin + share.first, column = share.head * a.head_dim;
	GLOBAL float *travelling = state + share.head * (2 + a.head_dim) * a.queries + token + query;
	struct running running = {-INFINITY, 0, {0}};
	if (!a.first && query < queries)
		take_state(travelling, &a, &running);
	BARRIER(); /* one thread writes what all of a query have read */
	int64_t origin = (a.bias_first + share.head) * a.bias_length + a.bias_origin - share.first;
	for (int block = 0; block < SMALTI_MANY; block++) {
		const int64_t count = starts && block == 0 && queries > 0 ? share.tokens : a.keys[block];
		for (int64_t key = 0; key < count; key += KEYS) {
			const int64_t keys = smaller(count - key, KEYS);
			const int64_t row = (share.begin + key) * a.kv_stride + column;
			score(q, token * a.q_stride + column, queries, blocks[block], row + a.k_first, keys,
			      bias ? bias + origin + key : bias, left, right, weights, &a);
			const float factor = soften(weights, &running);
			add_values(blocks[block], row + a.v_first + a.first_column, keys, factor, right,
				   weights, &running, &a);
		}
		origin += count;
	}
	if (query < queries && a.last) {
		finish(&running, &a, (token + query) * a.heads * a.head_dim + column, y);
		leave_lse(&running, &a, lse ? lse + share.head * a.queries + token + query : lse);
	} else if (query < queries) {
		leave_state(&running, &a, travelling);
	}
}
