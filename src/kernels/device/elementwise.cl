/* SPDX-License-Identifier: Apache-2.0 */

/* y = silu(x), f32 [count]. */
KERNEL(silu)(GLOBAL const float *x, GLOBAL float *y, struct silu_arguments a)
{
	const int64_t i = INDEX;
	if (i < a.count)
		y[i] = silu_of(x[i]);
}

/* y[rows, dim] += row[dim]. */
KERNEL(add_row)(GLOBAL const float *row, GLOBAL float *y, struct add_row_arguments a)
{
	const int64_t i = INDEX;
	if (i < a.rows * a.dim)
		y[i] += row[i % a.dim];
}
