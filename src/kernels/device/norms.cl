/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalisations (kernels/norms.h). */

/* Of a row of x, for all threads of the group. */
DEVICE struct smalti_normal normal_of(GLOBAL const float *x, int64_t dim, float epsilon, LOCAL float *room)
{
	struct smalti_normal normal;
	float sum = 0, squares = 0;
	for (int64_t i = THREAD; i < dim; i += THREADS)
		sum += x[i];
	normal.mean = group_sum(sum, room) / (float)dim;
	for (int64_t i = THREAD; i < dim; i += THREADS) {
		const float deviation = x[i] - normal.mean;
		squares += deviation * deviation;
	}
	normal.factor = 1.f / sqrt(group_sum(squares, room) / (float)dim + epsilon);
	return normal;
}

/* y = LN(x)·(1 + scale) + shift over each row of `dim`; a group per row. */
KERNEL(ln_modulate)(GLOBAL const float *x, GLOBAL const float *modulation, GLOBAL void *y,
		    struct ln_modulate_arguments a)
{
	LOCAL_ARRAY(float, room, 128);
	const int64_t first = GROUP * a.dim;
	GLOBAL const float *shift = modulation + a.shift_row * a.dim,
			   *scale = modulation + a.scale_row * a.dim;
	const struct smalti_normal normal = normal_of(x + first, a.dim, a.epsilon, room);
	for (int64_t i = THREAD; i < a.dim; i += THREADS)
		store_element(y, a.dtype, first + i,
			      (x[first + i] - normal.mean) * normal.factor * (1.f + scale[i]) + shift[i]);
}

/* y [rows, dim]; x is shards x[i] [*, columns[i]] side by side. A group per row. */
KERNEL(rmsnorm)(MANY_PARAMETERS(const float, x), GLOBAL const float *weight, GLOBAL void *y,
		struct rmsnorm_arguments a)
{
	LOCAL_ARRAY(float, room, 256);
	GLOBAL const float *const shards[SMALTI_MANY] = MANY_VALUES(x);
	const int64_t row = a.first_row + GROUP;
	float squares = 0;
	for (int shard = 0; shard < SMALTI_MANY && shards[shard]; shard++)
		for (int64_t i = THREAD; i < a.columns[shard]; i += THREADS) {
			const float value = shards[shard][row * a.columns[shard] + i];
			squares += value * value;
		}
	const float factor = 1.f / sqrt(group_sum(squares, room) / (float)a.dim + a.epsilon);
	int64_t column = 0;
	for (int shard = 0; shard < SMALTI_MANY && shards[shard]; column += a.columns[shard++])
		for (int64_t i = THREAD; i < a.columns[shard]; i += THREADS) {
			const float value = shards[shard][row * a.columns[shard] + i] * factor;
			store_element(y, a.dtype, GROUP * a.dim + column + i, value * weight[column + i]);
		}
}

DEVICE struct smalti_moments merge(struct smalti_moments a, struct smalti_moments b)
{
	if (a.count == 0 || b.count == 0)
		return a.count == 0 ? b : a;
	const double count = a.count + b.count, delta = b.mean - a.mean;
	struct smalti_moments merged;
	merged.count = count;
	merged.mean = a.mean + delta * (b.count / count);
	merged.m2 = a.m2 + b.m2 + delta * delta * (a.count * b.count / count);
	return merged;
}

/* A thread for each group of channels takes the parts in order. */
KERNEL(merge_moments)(MANY_PARAMETERS(const struct smalti_moments, part),
		      GLOBAL struct smalti_moments *merged, struct merge_moments_arguments a)
{
	GLOBAL const struct smalti_moments *const parts[SMALTI_MANY] = MANY_VALUES(part);
	if (INDEX >= a.groups)
		return;
	struct smalti_moments sum = {0, 0, 0};
	for (int part = 0; part < SMALTI_MANY && parts[part]; part++)
		sum = merge(sum, parts[part][INDEX]);
	merged[INDEX] = sum;
}

/* Of x [pixels, channels], moments [parts, groups] of as many parts of the pixels: the sums of deviations from the
 * group's first element, whose squares do not cancel when the mean is large. Each thread takes the same elements on
 * every run. */
KERNEL(band_moments)(GLOBAL const float *x, GLOBAL struct smalti_moments *moments, struct moments_arguments a)
{
	LOCAL_ARRAY(double, room, SMALTI_DEVICE_THREADS);
	LOCAL_ARRAY(double, more, SMALTI_DEVICE_THREADS); /* PoCL 3.1 makes `room` static if it is used twice */
	const int64_t width = a.channels / a.groups, part = GROUP / a.groups;
	const int64_t pixel = part * a.pixels / a.parts, pixels = (part + 1) * a.pixels / a.parts - pixel;
	const int64_t first = pixel * a.channels + GROUP % a.groups * width, count = pixels * width;
	const double origin = count > 0 ? x[first] : 0;
	double sum = 0, squares = 0;
	for (int64_t i = THREAD; i < count; i += THREADS) {
		const double deviation = x[i / width * a.channels + first + i % width] - origin;
		sum += deviation;
		squares += deviation * deviation;
	}
	sum = group_sum_double(sum, room);
	squares = group_sum_double(squares, more);
	if (THREAD == 0) {
		const double offset = count > 0 ? sum / (double)count : 0;
		moments[GROUP].count = (double)count;
		moments[GROUP].mean = origin + offset;
		moments[GROUP].m2 = squares - sum * offset;
	}
}

/* A thread for each group of channels takes the parts in order. */
KERNEL(join_moments)(GLOBAL const struct smalti_moments *moments, GLOBAL struct smalti_moments *joined,
		     struct moments_arguments a)
{
	struct smalti_moments sum = {0, 0, 0};
	if (INDEX >= a.groups)
		return;
	for (int64_t part = 0; part < a.parts; part++)
		sum = merge(sum, moments[part * a.groups + INDEX]);
	joined[INDEX] = sum;
}

/* GroupNorm as a·x + b: coefficients [2, channels] are all a, then all b. */
KERNEL(groupnorm_coefficients)(GLOBAL const struct smalti_moments *moments, GLOBAL const float *gamma,
			       GLOBAL const float *beta, GLOBAL float *coefficients,
			       struct coefficients_arguments a)
{
	if (INDEX >= a.channels)
		return;
	const struct smalti_moments group = moments[INDEX / (a.channels / a.groups)];
	const double factor = gamma[INDEX] / sqrt(group.m2 / group.count + (double)a.epsilon);
	coefficients[INDEX] = (float)factor;
	coefficients[a.channels + INDEX] = (float)(beta[INDEX] - group.mean * factor);
}

/* y [pixels, channels] = a·x + b. */
KERNEL(groupnorm_apply)(GLOBAL const float *x, GLOBAL const float *coefficients, GLOBAL void *y,
			struct groupnorm_arguments a)
{
	const int64_t channel = INDEX % a.channels;
	if (INDEX < a.pixels * a.channels)
		store_element(y, a.dtype, INDEX,
			      fma(coefficients[channel], x[INDEX], coefficients[a.channels + channel]));
}
