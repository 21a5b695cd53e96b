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
		      struct gated_gelu_arguments a)
{
	if (INDEX < a.rows * a.columns)
		store_element(y, a.result, INDEX, rounded_to(a.result, gelu_of(gate[INDEX])) * x[INDEX]);
}
