/* SPDX-License-Identifier: Apache-2.0
 *
 * What attention by products has between them and behind: see struct wide_attention_arguments. */

/* Loads eight scores from a column on, in units of ln 2; -inf beyond the keys. */
DEVICE void load_scores(GLOBAL const float *scores, uint i, const struct wide_attention_arguments *a, float values[8])
{
	load_eight(scores, SMALTI_F32, GROUP * (a->stride / 8) + i, values);
	UNROLL
	for (int j = 0; j < 8; j++)
		values[j] = 8 * (int64_t)i + j < a->keys ? values[j] * (a->scale * LOG2E) : -INFINITY;
}

/* Softens the row that a group has. */
DEVICE void soften_row(enum smalti_dtype dtype, GLOBAL const float *scores, GLOBAL void *weights, GLOBAL float *state,
		       GLOBAL float *factors, const struct wide_attention_arguments *a, LOCAL float *room,
		       LOCAL float *more)
{
	const uint eights = (uint)(a->stride / 8);
	const int64_t query = a->first + GROUP;
	const float before = a->begins ? -INFINITY : state[query];
	float values[8], largest = before, sum = 0;
	for (uint i = (uint)THREAD; i < eights; i += (uint)THREADS) {
		load_scores(scores, i, a, values);
		UNROLL
		for (int j = 0; j < 8; j++)
			largest = fmax(largest, values[j]);
	}
	largest = most_once(largest, room);
	const float origin = largest == -INFINITY ? 0 : largest; /* as in soften() */
	for (uint i = (uint)THREAD; i < eights; i += (uint)THREADS) {
		load_scores(scores, i, a, values);
		UNROLL
		for (int j = 0; j < 8; j++) {
			values[j] = exp2(values[j] - origin);
			sum += values[j];
		}
		store_eight(weights, dtype, GROUP * eights + i, values);
	}
	sum = sum_once(sum, more);
	if (THREAD > 0)
		return;
	const float factor = exp2(before - origin);
	state[query] = largest;
	state[a->queries + query] = a->begins ? sum : state[a->queries + query] * factor + sum;
	factors[GROUP] = factor;
}

KERNEL_FORMS(soften, (GLOBAL const float *scores, GLOBAL void *weights, GLOBAL float *state, GLOBAL float *factors,
	struct wide_attention_arguments a),
	LOCAL_ARRAY(float, room, SUM_ROOM(SMALTI_DEVICE_THREADS));
	LOCAL_ARRAY(float, more, SUM_ROOM(SMALTI_DEVICE_THREADS));
	soften_row(dtype, scores, weights, state, factors, &a, room, more);)

/* Scales a value; the thread beside has that of the next query. */
KERNEL(scale_values)(GLOBAL const float *factors, GLOBAL float *state, struct wide_attention_arguments a)
{
	const uint row = (uint)INDEX % (uint)a.rows, column = (uint)INDEX / (uint)a.rows;
	if (column < a.columns)
		state[(2 + (int64_t)column) * a.queries + a.first + row] *= factors[row];
}

/* Divides eight columns of a query; the thread beside has those of the next one. 0 where no key has a weight. */
DEVICE void divide_eight(enum smalti_dtype dtype, GLOBAL const float *state, GLOBAL void *y,
			 const struct wide_attention_arguments *a)
{
	const int64_t query = a->first + (uint)INDEX % (uint)a->rows, eight = (uint)INDEX / (uint)a->rows;
	float values[8];
	if (eight >= a->columns / 8)
		return;
	const float sum = state[a->queries + query], factor = sum != 0 ? 1.f / sum : 0;
	UNROLL
	for (int j = 0; j < 8; j++)
		values[j] = sum != 0 ? state[(2 + 8 * eight + j) * a->queries + query] * factor : 0;
	store_eight(y, dtype, query * (a->columns / 8) + eight, values);
}

KERNEL_FORMS(divide_values, (GLOBAL const float *state, GLOBAL void *y, struct wide_attention_arguments a),
	divide_eight(dtype, state, y, &a);)
