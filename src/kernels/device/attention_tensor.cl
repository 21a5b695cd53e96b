/* SPDX-License-Identifier: Apache-2.0 */

/* attend() for f16 and bf16 where a device multiplies small matrices of them itself (warp.h). A group has
 * TILE_ROWS queries of one head, each warp 16 of them, and goes through the keys TILE_ROWS at a time. A thread has two
 * queries, APART rows apart, and of 8 keys or columns of values two. Weights are rounded to the operands' type;
 * their sum is of those that were not. */
enum {
	TILE_ROWS = SMALTI_TENSOR_QUERIES,
	WARP_QUERIES = TILE_ROWS / (SMALTI_ATTEND_THREADS / 32),
	APART = WARP_QUERIES / 2, /* of a thread's two queries */
	MOST_STEP = SMALTI_ATTEND_COLUMNS + 8,
	KEY_TILES = TILE_ROWS / 8,
	COLUMN_TILES = SMALTI_ATTEND_COLUMNS / 8
};

/* Elements of a row of `columns` in local memory, and from one to the next: no eight rows begin in one bank.
 * @{ */
DEVICE int padded_of(int64_t columns)
{
	return (int)(columns + 15) / 16 * 16;
}

DEVICE int step_of(int64_t columns)
{
	return padded_of(columns) + 8;
}
/* @} */

/* NaN where f16 has infinity; see kernels/attention.h. */
DEVICE uint two_without_infinity(uint word)
{
	if ((word & 0x7fffu) == 0x7c00u)
		word |= 0x200u;
	if ((word & 0x7fff0000u) == 0x7c000000u)
		word |= 0x2000000u;
	return word;
}

/* Eight elements from `column` on, zeros beyond `columns`. */
DEVICE struct chunk load_chunk(GLOBAL const ushort *row, int column, int columns, bool aligned)
{
	struct chunk chunk = {{0, 0, 0, 0}};
	if (aligned && column + 8 <= columns)
		return *(GLOBAL const struct chunk *)(row + column);
	UNROLL
	for (int i = 0; i < 8; i++)
		if (column + i < columns)
			chunk.words[i / 2] |= (uint)row[column + i] << 16 * (i % 2);
	return chunk;
}

/* TILE_ROWS rows of `columns` elements, of which `rows` are there, filled up with zeros to `padded`. */
DEVICE void load_tile(GLOBAL const void *x, enum smalti_dtype dtype, int64_t first, int64_t stride, int64_t rows,
		      int columns, int padded, LOCAL ushort *to)
{
	GLOBAL const ushort *from = (GLOBAL const ushort *)x + first;
	const bool aligned = ((uint64_t)from % 16 | (uint64_t)stride % 8) == 0;
	const int chunks = padded / 8, step = padded + 8;
	for (int i = THREAD; i < TILE_ROWS * chunks; i += SMALTI_ATTEND_THREADS) {
		const int row = i / chunks, column = i % chunks * 8;
		struct chunk chunk = {{0, 0, 0, 0}};
		if (row < rows)
			chunk = load_chunk(from + row * stride, column, columns, aligned);
		if (dtype == SMALTI_F16)
			for (int word = 0; word < 4; word++)
				chunk.words[word] = two_without_infinity(chunk.words[word]);
		*(LOCAL struct chunk *)(to + row * step + column) = chunk;
	}
}

/* What a thread keeps of its two queries. */
struct tile_running {
	float origin[2], sum[2]; /* the sum of what this thread weighed */
	float values[COLUMN_TILES][4];
	int64_t first, end; /* columns of the head's values */
};

/* scores [16 of the warp's queries, TILE_ROWS keys] += q · kᵀ, of `columns` elements. */
DEVICE void add_scores(enum smalti_dtype dtype, LOCAL const ushort *q, LOCAL const ushort *k, int columns,
		       float scores[KEY_TILES][4])
{
	const int step = step_of(columns), matrix = LANE / 8, row = LANE % 8;
	q += (THREAD / 32 * WARP_QUERIES + matrix % 2 * 8 + row) * step + matrix / 2 * 8;
	k += (matrix / 2 * 8 + row) * step + matrix % 2 * 8;
	for (int i = 0; i < padded_of(columns); i += 16) {
		uint left[4], right[4];
		load_matrices(q + i, left);
		UNROLL
		for (int tile = 0; tile < KEY_TILES; tile += 2) {
			load_matrices(k + tile * 8 * step + i, right);
			multiply_matrices(dtype, scores[tile], left, right);
			multiply_matrices(dtype, scores[tile + 1], left, right + 2);
		}
	}
}

/* Units of ln 2, with what is added to them, and -inf beyond the keys. `bias` is that of query 0 and key 0.
 */
DEVICE void finish_scores(float scores[KEY_TILES][4], GLOBAL const float *bias, float scale, int64_t keys,
			  int64_t queries)
{
	UNROLL
	for (int tile = 0; tile < KEY_TILES; tile++) {
		UNROLL
		for (int i = 0; i < 4; i++) {
			const int key = tile * 8 + LANE % 4 * 2 + i % 2;
			const int query = THREAD / 32 * WARP_QUERIES + LANE / 4 + i / 2 * APART;
			const float added = bias && key < keys && query < queries ? bias[key - query] * LOG2E : 0;
			scores[tile][i] = key < keys ? scores[tile][i] * scale + added : -INFINITY;
		}
	}
}

DEVICE float most_of_row(float value)
{
	value = fmax(value, of_other_lane(value, 1));
	return fmax(value, of_other_lane(value, 2));
}

DEVICE float sum_of_row(float value)
{
	value += of_other_lane(value, 1);
	return value + of_other_lane(value, 2);
}

/* Scores become weights; what was summed before is brought to the new origin. */
DEVICE void soften_tile(float scores[KEY_TILES][4], int tiles, struct tile_running *state)
{
	UNROLL
	for (int half_of = 0; half_of < 2; half_of++) {
		float largest = state->origin[half_of], total = 0;
		UNROLL
		for (int tile = 0; tile < KEY_TILES; tile++)
			largest =
			    fmax(largest, fmax(scores[tile][2 * half_of], scores[tile][2 * half_of + 1]));
		largest = most_of_row(largest);
		const float origin = largest == -INFINITY ? 0 : largest; /* as in soften() */
		UNROLL
		for (int tile = 0; tile < KEY_TILES; tile++) {
			UNROLL
			for (int i = 2 * half_of; i < 2 * half_of + 2; i++) {
				scores[tile][i] = exp2(scores[tile][i] - origin);
				total += scores[tile][i];
			}
		}
		const float factor = exp2(state->origin[half_of] - origin);
		state->origin[half_of] = largest;
		state->sum[half_of] = state->sum[half_of] * factor + total;
		UNROLL
		for (int tile = 0; tile < tiles; tile++) {
			state->values[tile][2 * half_of] *= factor;
			state->values[tile][2 * half_of + 1] *= factor;
		}
	}
}

/* values [16 queries, 8 tiles] += weights · v, whose rows are `step` elements apart. */
DEVICE void add_tile_values(enum smalti_dtype dtype, int tiles, float weights[KEY_TILES][4],
			    LOCAL const ushort *v, int step, struct tile_running *state)
{
	const int matrix = LANE / 8;
	v += (matrix % 2 * 8 + LANE % 8) * step + matrix / 2 * 8;
	UNROLL
	for (int key = 0; key < KEY_TILES; key += 2) {
		const uint left[4] = {two_of(dtype, weights[key][0], weights[key][1]),
				      two_of(dtype, weights[key][2], weights[key][3]),
				      two_of(dtype, weights[key + 1][0], weights[key + 1][1]),
				      two_of(dtype, weights[key + 1][2], weights[key + 1][3])};
		UNROLL
		for (int tile = 0; tile < tiles; tile += 2) {
			uint right[4];
			load_turned(v + key * 8 * step + tile * 8, right);
			multiply_matrices(dtype, state->values[tile], left, right);
			multiply_matrices(dtype, state->values[tile + 1], left, right + 2);
		}
	}
}

/* As take_state(), leave_state(), finish() and leave_lse(), for the query of `half_of`; `from` and `to` are
 * where its state begins. @{ */
DEVICE int64_t tile_column(int tile, int i, const struct tile_running *state)
{
	return state->first + tile * 8 + LANE % 4 * 2 + i;
}

DEVICE void take_tile_state(GLOBAL const float *from, const struct attend_arguments *a, int tiles, int half_of,
		      struct tile_running *state)
{
	state->origin[half_of] = from[0];
	state->sum[half_of] = LANE % 4 == 0 ? from[a->queries] : 0;
	UNROLL
	for (int tile = 0; tile < tiles; tile++) {
		UNROLL
		for (int i = 0; i < 2; i++) {
			const int64_t column = tile_column(tile, i, state);
			if (column < state->end)
				state->values[tile][2 * half_of + i] = from[(2 + column) * a->queries];
		}
	}
}

DEVICE void leave_tile_state(const struct tile_running *state, float sum, const struct attend_arguments *a, int tiles,
		       int half_of, GLOBAL float *to)
{
	if (LANE % 4 == 0 && state->end == a->head_dim) {
		to[0] = state->origin[half_of];
		to[a->queries] = sum;
	}
	UNROLL
	for (int tile = 0; tile < tiles; tile++) {
		UNROLL
		for (int i = 0; i < 2; i++) {
			const int64_t column = tile_column(tile, i, state);
			if (column < state->end)
				to[(2 + column) * a->queries] = state->values[tile][2 * half_of + i];
		}
	}
}

DEVICE void finish_tile(const struct tile_running *state, float sum, const struct attend_arguments *a, int tiles,
			int half_of, int64_t at, GLOBAL void *y, GLOBAL float *lse)
{
	const float inverse = sum != 0 ? 1.f / sum : 0;
	UNROLL
	for (int tile = 0; tile < tiles; tile++) {
		UNROLL
		for (int i = 0; i < 2; i++) {
			const int64_t column = tile_column(tile, i, state);
			if (column < state->end)
				store_element(y, a->y_dtype, at + column,
					      sum != 0 ? state->values[tile][2 * half_of + i] * inverse : 0);
		}
	}
	if (lse && LANE % 4 == 0 && state->end == a->head_dim)
		lse[0] = state->origin[half_of] + log2(sum);
}
/* @} */

/* Where a group has rows of queries, keys and values. Keys and values have a place each if rows are short enough; else
 * they take turns. */
struct tile_room {
	LOCAL ushort *queries, *keys, *values;
	bool apart;
};

DEVICE struct tile_room cut_room(LOCAL struct chunk *room, int depth, int v_step)
{
	struct tile_room cut;
	cut.queries = (LOCAL ushort *)room;
	cut.keys = cut.queries + TILE_ROWS * step_of(depth);
	cut.apart = 2 * step_of(depth) + v_step <= 2 * MOST_STEP;
	cut.values = cut.apart ? cut.keys + TILE_ROWS * step_of(depth) : cut.keys;
	return cut;
}

/* The warp's scores of `keys` keys, SMALTI_ATTEND_COLUMNS columns at a time; queries stay where they are if those are
 * all. Behind it all threads have seen what was loaded before, and none needs the keys if values take their place. */
DEVICE void score_tile(enum smalti_dtype dtype, GLOBAL const void *q, int64_t q_first, int64_t queries,
		       GLOBAL const void *k, int64_t k_first, int64_t keys, const struct tile_room *room,
		       float scores[KEY_TILES][4], const struct attend_arguments *a)
{
	for (int64_t d = 0; d < a->head_dim; d += SMALTI_ATTEND_COLUMNS) {
		const int depth = (int)smaller(a->head_dim - d, SMALTI_ATTEND_COLUMNS);
		if (a->head_dim > SMALTI_ATTEND_COLUMNS)
			load_tile(q, dtype, q_first + d, a->q_stride, queries, depth, padded_of(depth),
				  room->queries);
		load_tile(k, dtype, k_first + d, a->kv_stride, keys, depth, padded_of(depth), room->keys);
		BARRIER();
		add_scores(dtype, room->queries, room->keys, depth, scores);
		if (!room->apart)
			BARRIER();
	}
}

/* Of `dtype`, and 8 `tiles` columns of values at most: both constants. */
DEVICE void attend_tiles(enum smalti_dtype dtype, int tiles, GLOBAL const void *q, GLOBAL const void *const *blocks,
			 GLOBAL const float *bias, GLOBAL float *state, GLOBAL void *y, GLOBAL const int64_t *starts,
			 GLOBAL float *lse, const struct attend_arguments *a, LOCAL struct chunk *memory)
{
	const int64_t part = GROUP % a->parts * SMALTI_ATTEND_COLUMNS;
	const int depth = (int)smaller(a->head_dim, SMALTI_ATTEND_COLUMNS);
	const int columns = (int)smaller(a->columns - part, SMALTI_ATTEND_COLUMNS);
	const struct share share = share_of_group(GROUP / a->parts, TILE_ROWS, starts, a);
	const int64_t queries = smaller(share.tokens - share.first, TILE_ROWS), token = share.begin + share.first;
	const int64_t column = share.head * a->head_dim, q_first = token * a->q_stride + column;
	const struct tile_room room = cut_room(memory, depth, 8 * tiles + 8);
	const int query = THREAD / 32 * WARP_QUERIES + LANE / 4;
	GLOBAL float *travelling = state + share.head * (2 + a->head_dim) * a->queries + token + query;
	struct tile_running running = {{-INFINITY, -INFINITY}, {0, 0}, {{0}}, a->first_column + part, 0};
	running.end = running.first + columns;
	UNROLL
	for (int half_of = 0; half_of < 2; half_of++)
		if (!a->first && query + half_of * APART < queries)
			take_tile_state(travelling + half_of * APART, a, tiles, half_of, &running);
	if (depth == a->head_dim)
		load_tile(q, dtype, q_first, a->q_stride, queries, depth, padded_of(depth), room.queries);
	int64_t origin = (a->bias_first + share.head) * a->bias_length + a->bias_origin - share.first;
	for (int block = 0; block < SMALTI_MANY; block++) {
		const int64_t count = starts && block == 0 && queries > 0 ? share.tokens : a->keys[block];
		for (int64_t key = 0; key < count; key += TILE_ROWS) {
			const int64_t keys = smaller(count - key, TILE_ROWS);
			const int64_t row = (share.begin + key) * a->kv_stride + column;
			const int64_t v_first = row + a->v_first + running.first;
			float scores[KEY_TILES][4] = {{0}};
			if (room.apart)
				load_tile(blocks[block], dtype, v_first, a->kv_stride, keys, columns, 8 * tiles,
					  room.values);
			score_tile(dtype, q, q_first, queries, blocks[block], row + a->k_first, keys, &room, scores, a);
			if (!room.apart) {
				load_tile(blocks[block], dtype, v_first, a->kv_stride, keys, columns, 8 * tiles,
					  room.values);
				BARRIER();
			}
			finish_scores(scores, bias ? bias + origin + key : bias, a->scale * LOG2E, keys, queries);
			soften_tile(scores, tiles, &running);
			add_tile_values(dtype, tiles, scores, room.values, 8 * tiles + 8, &running);
			BARRIER();
		}
		origin += count;
	}
	UNROLL
	for (int half_of = 0; half_of < 2; half_of++) {
		const float sum = sum_of_row(running.sum[half_of]);
		const int64_t at = token + query + half_of * APART;
		if (query + half_of * APART >= queries)
			continue;
		if (a->last)
			finish_tile(&running, sum, a, tiles, half_of, at * a->heads * a->head_dim + column, y,
				    lse ? lse + share.head * a->queries + at : lse);
		else
			leave_tile_state(&running, sum, a, tiles, half_of, travelling + half_of * APART);
	}
}

#define ATTEND_PARAMETERS \
	GLOBAL const void *q, MANY_PARAMETERS(const void, kv), GLOBAL const float *bias, GLOBAL float *state, \
	    GLOBAL void *y, GLOBAL const int64_t *starts, GLOBAL float *lse, struct attend_arguments a
#define ATTEND(dtype, columns) \
	LOCAL_ARRAY(struct chunk, room, 2 * TILE_ROWS * MOST_STEP / 8); \
	GLOBAL const void *const blocks[SMALTI_MANY] = MANY_VALUES(kv); \
	attend_tiles(dtype, (columns) / 8, q, blocks, bias, state, y, starts, lse, &a, room)

KERNEL_WITHIN(attend_f16_narrow, SMALTI_ATTEND_THREADS, 4)(ATTEND_PARAMETERS)
{
	ATTEND(SMALTI_F16, SMALTI_ATTEND_NARROW);
}

KERNEL_WITHIN(attend_bf16_narrow, SMALTI_ATTEND_THREADS, 4)(ATTEND_PARAMETERS)
{
	ATTEND(SMALTI_BF16, SMALTI_ATTEND_NARROW);
}

KERNEL_WITHIN(attend_f16_wide, SMALTI_ATTEND_THREADS, 3)(ATTEND_PARAMETERS)
{
	ATTEND(SMALTI_F16, SMALTI_ATTEND_COLUMNS);
}

KERNEL_WITHIN(attend_bf16_wide, SMALTI_ATTEND_THREADS, 3)(ATTEND_PARAMETERS)
{
	ATTEND(SMALTI_BF16, SMALTI_ATTEND_COLUMNS);
}
