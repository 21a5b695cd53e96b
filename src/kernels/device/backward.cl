/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients (kernels/kernels.def), and what a forward keeps for them. */

KERNEL(gelu)(GLOBAL const float *x, GLOBAL void *y, struct gelu_arguments a)
{
	if (INDEX < a.count)
		store_element(y, a.dtype, INDEX, gelu_of(x[INDEX]));
}

/* Of f(z) = z·s(z), where s is the logistic function of something whose derivative is `inner`. Where s is 0
 * or 1 so is the slope, however large z. */
DEVICE float logistic_slope(float z, float s, float inner)
{
	return s * (z * (1.f - s) * inner + 1.f);
}

/* GELU's z³ could overflow beyond this, where its s is 0 or 1. NaN stays NaN. */
DEVICE float bounded(float z)
{
	return z < -32.f ? -32.f : z > 32.f ? 32.f : z;
}

KERNEL(gelu_backward)(GLOBAL const float *x, GLOBAL float *g, struct gelu_backward_arguments a)
{
	const float factor = 1.5957691216f;
	if (INDEX >= a.count)
		return;
	const float z = bounded(x[INDEX]), square = z * z;
	const float s = 1.f / (1.f + exp(-factor * z * (1.f + 0.044715f * square)));
	g[INDEX] *= logistic_slope(z, s, factor * (1.f + 0.134145f * square));
}

KERNEL(silu_backward)(GLOBAL const float *x, GLOBAL float *g, struct gelu_backward_arguments a)
{
	if (INDEX < a.count)
		g[INDEX] *= logistic_slope(x[INDEX], 1.f / (1.f + exp(-x[INDEX])), 1.f);
}

KERNEL(gated_sum)(GLOBAL const float *x, GLOBAL const float *z, GLOBAL const float *modulation,
		  GLOBAL float *y, struct gated_sum_arguments a)
{
	if (INDEX >= a.rows * a.dim)
		return;
	const float gate = modulation ? modulation[a.gate_row * a.dim + INDEX % a.dim] : 1.f;
	y[INDEX] = fma(gate, z[INDEX], x[INDEX]);
}

/* Does the same in eights, of which a thread has one. */
KERNEL(gated_sum_eights)(GLOBAL const float *x, GLOBAL const float *z, GLOBAL const float *modulation,
			 GLOBAL float *y, struct gated_sum_arguments a)
{
	const uint i = (uint)INDEX, eights = (uint)a.dim / 8;
	float values[8], sums[8], factors[8] = {1, 1, 1, 1, 1, 1, 1, 1};
	if (INDEX >= a.rows * eights)
		return;
	load_eight(x, SMALTI_F32, i, sums);
	load_eight(z, SMALTI_F32, i, values);
	if (modulation)
		load_eight(modulation, SMALTI_F32, a.gate_row * eights + i % eights, factors);
	UNROLL
	for (int j = 0; j < 8; j++)
		sums[j] = fma(factors[j], values[j], sums[j]);
	store_eight(y, SMALTI_F32, i, sums);
}

/* Sums over rows: a group has SUM_COLUMNS columns, and SUM_LANES threads share each, of which one has every
 * SUM_LANES-th row. Few columns a group, so that a model's width makes more groups than a card has multiprocessors. */
enum { SUM_COLUMNS = SMALTI_SUM_COLUMNS, SUM_LANES = SMALTI_DEVICE_THREADS / SUM_COLUMNS };

DEVICE int64_t summed_column(void)
{
	return GROUP * SUM_COLUMNS + THREAD % SUM_COLUMNS;
}

/* The sum of a column's threads, for those of its first row. */
DEVICE float column_sum(float value, LOCAL float *room)
{
	float sum = 0;
	room[THREAD] = value;
	BARRIER();
	for (int lane = 0; lane < SUM_LANES; lane++)
		sum += room[lane * SUM_COLUMNS + THREAD % SUM_COLUMNS];
	return sum;
}

DEVICE void sum_rows(GLOBAL const float *x, int64_t rows, int64_t columns, int64_t stride, bool add,
		     LOCAL float *room, GLOBAL float *y)
{
	const int64_t column = summed_column();
	float sum = 0;
	for (int64_t row = THREAD / SUM_COLUMNS; row < rows && column < columns; row += SUM_LANES)
		sum += x[row * stride + column];
	sum = column_sum(sum, room);
	if (THREAD < SUM_COLUMNS && column < columns)
		y[column] = add ? y[column] + sum : sum;
}

KERNEL(column_sums)(GLOBAL const float *x, GLOBAL float *y, struct column_sums_arguments a)
{
	LOCAL_ARRAY(float, room, SUM_COLUMNS *SUM_LANES);
	sum_rows(x, a.rows, a.dim, a.dim, a.add, room, y);
}

/* gbias of linear_weight. */
KERNEL(gradient_sums)(GLOBAL const float *gy, GLOBAL float *gbias, struct linear_weight_arguments a)
{
	LOCAL_ARRAY(float, room, SUM_COLUMNS *SUM_LANES);
	sum_rows(gy + a.first, a.rows, a.out, a.stride, a.add, room, gbias);
}

KERNEL(gate_backward)(GLOBAL const float *gy, GLOBAL const float *z, GLOBAL const float *modulation,
		      GLOBAL float *gz, GLOBAL float *gmodulation, struct gated_sum_arguments a)
{
	LOCAL_ARRAY(float, room, SUM_COLUMNS *SUM_LANES);
	const int64_t column = summed_column(), at = a.gate_row * a.dim + column;
	const float gate = column < a.dim ? modulation[at] : 0.f;
	float sum = 0;
	for (int64_t row = THREAD / SUM_COLUMNS; row < a.rows && column < a.dim; row += SUM_LANES) {
		const int64_t i = row * a.dim + column;
		sum += gy[i] * z[i];
		gz[i] = gate * gy[i];
	}
	sum = column_sum(sum, room);
	if (THREAD < SUM_COLUMNS && column < a.dim)
		gmodulation[at] += sum;
}

/* gx of ln_modulate, and in `normals` [rows] how x is normalised. A group per row. */
KERNEL(ln_modulate_rows)(GLOBAL const float *x, GLOBAL const float *modulation, GLOBAL const float *gy,
			 GLOBAL float *gx, GLOBAL struct smalti_normal *normals,
			 struct ln_modulate_backward_arguments a)
{
	LOCAL_ARRAY(float, room, SMALTI_DEVICE_THREADS);
	LOCAL_ARRAY(float, more, SMALTI_DEVICE_THREADS);
	const int64_t first = GROUP * a.dim;
	const struct smalti_normal normal = normal_of(x + first, a.dim, a.epsilon, room);
	GLOBAL const float *scale = modulation + a.scale_row * a.dim;
	float sum = 0, products = 0;
	for (int64_t i = THREAD; i < a.dim; i += THREADS) {
		const float g = gy[first + i] * (1.f + scale[i]);
		sum += g;
		products += g * (x[first + i] - normal.mean) * normal.factor;
	}
	const float mean = group_sum(sum, room) / (float)a.dim;
	const float product = group_sum(products, more) / (float)a.dim;
	for (int64_t i = THREAD; i < a.dim; i += THREADS) {
		const float normalised = (x[first + i] - normal.mean) * normal.factor;
		const float g = gy[first + i] * (1.f + scale[i]);
		const float result = (g - mean - normalised * product) * normal.factor;
		gx[first + i] = a.add ? gx[first + i] + result : result;
	}
	if (THREAD == 0)
		normals[GROUP] = normal;
}

KERNEL(ln_modulate_columns)(GLOBAL const float *x, GLOBAL const float *gy, GLOBAL const struct smalti_normal *normals,
			    GLOBAL float *gmodulation, struct ln_modulate_backward_arguments a)
{
	LOCAL_ARRAY(float, room, SUM_COLUMNS *SUM_LANES);
	LOCAL_ARRAY(float, more, SUM_COLUMNS *SUM_LANES);
	const int64_t column = summed_column();
	float shift = 0, scale = 0;
	for (int64_t row = THREAD / SUM_COLUMNS; row < a.rows && column < a.dim; row += SUM_LANES) {
		const int64_t i = row * a.dim + column;
		shift += gy[i];
		scale += gy[i] * (x[i] - normals[row].mean) * normals[row].factor;
	}
	shift = column_sum(shift, room);
	scale = column_sum(scale, more);
	if (THREAD < SUM_COLUMNS && column < a.dim) {
		gmodulation[a.shift_row * a.dim + column] += shift;
		gmodulation[a.scale_row * a.dim + column] += scale;
	}
}

/* deltas f32 [heads, queries]: Σ y ⊙ gy of each head's columns. */
KERNEL(attention_deltas)(GLOBAL const void *y, GLOBAL const float *gy, GLOBAL float *deltas,
			 struct attention_backward_arguments a)
{
	const int64_t head = INDEX / a.queries, query = INDEX % a.queries;
	const int64_t first = (query * a.heads + head) * a.head_dim;
	float sum = 0;
	if (head >= a.heads)
		return;
	for (int64_t i = first; i < first + a.head_dim; i++)
		sum += load_element(y, a.dtype, i) * rounded_to(a.dtype, gy[i]);
	deltas[INDEX] = sum;
}

/* See struct attention_weights_arguments. */
KERNEL(attention_weights)(GLOBAL const float *scores, GLOBAL const float *lse, GLOBAL const float *deltas,
			  GLOBAL void *weights, struct attention_weights_arguments a)
{
	const int64_t count = a.heads * a.queries * a.keys, row = INDEX / a.keys;
	if (INDEX >= count)
		return;
	const int64_t query = row / a.queries * a.all_queries + a.first_query + row % a.queries;
	const float p = exp2(fma(scores[INDEX], a.scale * LOG2E, -lse[query]));
	const float g = p * (scores[count + INDEX] - deltas[query]) * a.scale;
	store_element(weights, a.result, INDEX, rounded_to(a.dtype, p));
	store_element(weights, a.result, count + INDEX, rounded_to(a.dtype, g));
}
