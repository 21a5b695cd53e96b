/* SPDX-License-Identifier: Apache-2.0
 *
 * What T5 has of its own: a thread for each element. */

/* y [tokens, columns] from the table [vocabulary, dim]. Who inserts the task has looked at the ids: others
 * would make rows of NaN. */
KERNEL(embed_tokens)(GLOBAL const int32_t *ids, GLOBAL const void *table, GLOBAL float *y,
		     struct embed_tokens_arguments a)
{
	const int64_t token = INDEX / a.columns, column = INDEX % a.columns;
	if (token >= a.tokens)
		return;
	const int32_t id = ids[token];
	const bool known = id >= 0 && id < a.vocabulary;
	y[INDEX] = known ? load_element(table, a.dtype, id * a.dim + a.first + column) : NAN;
}

/* y [rows, columns] = gelu(gate) ⊙ x, both f32, the gate rounded to y's dtype as it is on the CPUs. */
KERNEL(gelu_multiply)(GLOBAL const float *gate, GLOBAL const float *x, GLOBAL void *y,
		      struct geglu_arguments a)
{
	if (INDEX < a.rows * a.columns)
		store_element(y, a.result, INDEX, rounded_to(a.result, gelu_of(gate[INDEX])) * x[INDEX]);
}

/* Does the same in eights, of which a thread has one. */
DEVICE void multiply_eight(enum smalti_dtype dtype, GLOBAL const float *gate, GLOBAL const float *x,
			   GLOBAL void *y, const struct geglu_arguments *a)
{
	const uint i = (uint)INDEX;
	float values[8], factors[8];
	if (INDEX >= a->rows * a->columns / 8)
		return;
	load_eight(gate, SMALTI_F32, i, factors);
	load_eight(x, SMALTI_F32, i, values);
	UNROLL
	for (int j = 0; j < 8; j++)
		values[j] *= rounded_to(dtype, gelu_of(factors[j]));
	store_eight(y, dtype, i, values);
}

KERNEL_FORMS(gelu_multiply, (GLOBAL const float *gate, GLOBAL const float *x, GLOBAL void *y,
	struct geglu_arguments a),
	multiply_eight(dtype, gate, x, y, &a);)

/* Multiplies y [rows, columns] by factors, both of y's dtype. */
KERNEL(multiply)(GLOBAL const void *factors, GLOBAL void *y, struct geglu_arguments a)
{
	if (INDEX < a.rows * a.columns)
		store_element(y, a.result, INDEX,
			      load_element(factors, a.result, INDEX) * load_element(y, a.result, INDEX));
}

/* Does the same in eights, of which a thread has one. */
DEVICE void scale_eight(enum smalti_dtype dtype, GLOBAL const void *factors, GLOBAL void *y,
			const struct geglu_arguments *a)
{
	const uint i = (uint)INDEX;
	float values[8], scales[8];
	if (INDEX >= a->rows * a->columns / 8)
		return;
	load_eight(factors, dtype, i, scales);
	load_eight(y, dtype, i, values);
	UNROLL
	for (int j = 0; j < 8; j++)
		values[j] *= scales[j];
	store_eight(y, dtype, i, values);
}

KERNEL_HALVES(multiply, (GLOBAL const void *factors, GLOBAL void *y, struct geglu_arguments a),
	scale_eight(dtype, factors, y, &a);)

/* Spreads the bias to eight keys of a query, by their distances. What nobody reads is 0, so that no row is without any
 * key. */
DEVICE void spread_eight(enum smalti_dtype dtype, GLOBAL const float *bias, GLOBAL const int64_t *starts, GLOBAL void *y,
			 const struct spread_bias_arguments *a)
{
	const uint eights = (uint)a->padded / 8, row = (uint)INDEX / eights, key = (uint)INDEX % eights * 8,
		   query = row % (uint)a->padded, head = row / (uint)a->padded;
	int64_t begin = 0, end = a->tokens;
	float values[8];
	if (head >= (uint)a->heads)
		return;
	for (int64_t i = 0; starts && i < a->captions; i++)
		if (query >= starts[i] && query < starts[i + 1]) {
			begin = starts[i];
			end = starts[i + 1];
		}
	GLOBAL const float *from = bias + (a->bias_first + head) * a->bias_length + a->bias_origin;
	UNROLL
	for (int j = 0; j < 8; j++) {
		const int64_t at = (int64_t)key + j;
		values[j] = query >= a->tokens ? 0 : at < begin || at >= end ? -INFINITY : from[at - query];
	}
	store_eight(y, dtype, INDEX, values);
}

KERNEL_HALVES(spread_bias, (GLOBAL const float *bias, GLOBAL const int64_t *starts, GLOBAL void *y,
	struct spread_bias_arguments a),
	spread_eight(dtype, bias, starts, y, &a);)
