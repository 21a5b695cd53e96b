/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalisations (kernels/kernels.def). */

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
	LOCAL_ARRAY(float, room, SMALTI_DEVICE_THREADS);
	const int64_t first = GROUP * a.dim;
	GLOBAL const float *shift = modulation + a.shift_row * a.dim,
			   *scale = modulation + a.scale_row * a.dim;
	const struct smalti_normal normal = normal_of(x + first, a.dim, a.epsilon, room);
	for (int64_t i = THREAD; i < a.dim; i += THREADS)
		store_element(y, a.dtype, first + i,
			      (x[first + i] - normal.mean) * normal.factor * (1.f + scale[i]) + shift[i]);
}

/* Loads the thread's part of a row, zeros beyond it, and returns its sum. */
DEVICE float load_row(GLOBAL const float *x, int64_t first, int eights, float values[SMALTI_ROW_EIGHTS][8])
{
	float sum = 0;
	UNROLL
	for (int part = 0; part < SMALTI_ROW_EIGHTS; part++) {
		const int at = part * THREADS + THREAD;
		UNROLL
		for (int i = 0; i < 8; i++)
			values[part][i] = 0;
		if (at < eights)
			load_eight(x, SMALTI_F32, first + at, values[part]);
		UNROLL
		for (int i = 0; i < 8; i++)
			sum += values[part][i];
	}
	return sum;
}

/* Subtracts the mean from the thread's part of a row and returns the sum of its squares. */
DEVICE float centre_row(float mean, int eights, float values[SMALTI_ROW_EIGHTS][8])
{
	float squares = 0;
	UNROLL
	for (int part = 0; part < SMALTI_ROW_EIGHTS; part++)
		UNROLL
		for (int i = 0; i < 8; i++) {
			values[part][i] -= mean;
			squares += part * THREADS + THREAD < eights ? values[part][i] * values[part][i] : 0.f;
		}
	return squares;
}

/* Does the same to rows of at most SMALTI_ROW_EIGHTS · THREADS eights, which threads keep in registers. */
DEVICE void modulate_eights(enum smalti_dtype dtype, GLOBAL const float *x, GLOBAL const float *modulation,
			    GLOBAL void *y, const struct ln_modulate_arguments *a, LOCAL float *room,
			    LOCAL float *more)
{
	const int eights = (int)(a->dim / 8);
	const int64_t first = GROUP * eights;
	float values[SMALTI_ROW_EIGHTS][8], factors[8], offsets[8];
	const float mean = sum_once(load_row(x, first, eights, values), room) / (float)a->dim;
	const float squares = sum_once(centre_row(mean, eights, values), more);
	const float factor = 1.f / sqrt(squares / (float)a->dim + a->epsilon);
	UNROLL
	for (int part = 0; part < SMALTI_ROW_EIGHTS; part++) {
		const int at = part * THREADS + THREAD;
		if (at >= eights)
			continue;
		load_eight(modulation, SMALTI_F32, a->scale_row * eights + at, factors);
		load_eight(modulation, SMALTI_F32, a->shift_row * eights + at, offsets);
		UNROLL
		for (int i = 0; i < 8; i++)
			values[part][i] = values[part][i] * factor * (1.f + factors[i]) + offsets[i];
		store_eight(y, dtype, first + at, values[part]);
	}
}

KERNEL_FORMS(ln_modulate, (GLOBAL const float *x, GLOBAL const float *modulation, GLOBAL void *y,
	struct ln_modulate_arguments a),
	LOCAL_ARRAY(float, room, SUM_ROOM(SMALTI_DEVICE_THREADS));
	LOCAL_ARRAY(float, more, SUM_ROOM(SMALTI_DEVICE_THREADS));
	modulate_eights(dtype, x, modulation, y, &a, room, more);)

/* y [rows, dim]; x is shards x[i] [*, columns[i]] side by side. A group per row. */
KERNEL(rmsnorm)(MANY_PARAMETERS(const float, x), GLOBAL const float *weight, GLOBAL void *y,
		struct rmsnorm_arguments a)
{
	LOCAL_ARRAY(float, room, SMALTI_DEVICE_THREADS);
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

/* Loads the at-th eight of a row whose shards are whole eights. Which shard has it is found without an array,
 * which would be in memory. */
DEVICE void load_of_shards(GLOBAL const float *const shards[SMALTI_MANY], int64_t row, int at,
			   const struct rmsnorm_arguments *a, float values[8])
{
	GLOBAL const float *shard = shards[0];
	int64_t place = 0;
	int left = at;
	UNROLL
	for (int i = 0; i < SMALTI_MANY; i++) {
		const int eights = (int)(a->columns[i] / 8);
		if (left >= 0 && left < eights) {
			shard = shards[i];
			place = row * eights + left;
		}
		left -= eights;
	}
	load_eight(shard, SMALTI_F32, place, values);
}

/* Does the same to rows of at most SMALTI_ROW_EIGHTS · THREADS eights, which threads keep in registers. */
DEVICE void rms_eights(enum smalti_dtype dtype, GLOBAL const float *const shards[SMALTI_MANY],
		       GLOBAL const float *weight, GLOBAL void *y, const struct rmsnorm_arguments *a,
		       LOCAL float *room)
{
	const int eights = (int)(a->dim / 8);
	float values[SMALTI_ROW_EIGHTS][8] = {{0}}, factors[8], squares = 0;
	UNROLL
	for (int part = 0; part < SMALTI_ROW_EIGHTS; part++) {
		const int at = part * THREADS + THREAD;
		if (at < eights)
			load_of_shards(shards, a->first_row + GROUP, at, a, values[part]);
		UNROLL
		for (int i = 0; i < 8; i++)
			squares += values[part][i] * values[part][i];
	}
	const float factor = 1.f / sqrt(sum_once(squares, room) / (float)a->dim + a->epsilon);
	UNROLL
	for (int part = 0; part < SMALTI_ROW_EIGHTS; part++) {
		const int at = part * THREADS + THREAD;
		if (at >= eights)
			continue;
		load_eight(weight, SMALTI_F32, at, factors);
		UNROLL
		for (int i = 0; i < 8; i++)
			values[part][i] *= factor * factors[i];
		store_eight(y, dtype, GROUP * eights + at, values[part]);
	}
}

KERNEL_FORMS(rmsnorm, (MANY_PARAMETERS(const float, x), GLOBAL const float *weight, GLOBAL void *y,
	struct rmsnorm_arguments a),
	LOCAL_ARRAY(float, room, SUM_ROOM(SMALTI_DEVICE_THREADS));
	GLOBAL const float *const shards[SMALTI_MANY] = MANY_VALUES(x);
	rms_eights(dtype, shards, weight, y, &a, room);)

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

/* A group of channels in one of so many parts of the pixels: its first element, how many pixels. */
struct band_part {
	int64_t first, pixels;
};

/* Returns what this group of threads sums. */
DEVICE struct band_part part_of_group(const struct moments_arguments *a)
{
	const uint groups = (uint)a->groups, part = (uint)GROUP / groups, group = (uint)GROUP - part * groups;
	const int64_t pixel = part * a->step, left = a->pixels - pixel;
	struct band_part band;
	band.first = pixel * a->channels + group * ((uint)a->channels / groups);
	band.pixels = left > 0 ? smaller(left, a->step) : 0;
	return band;
}

/* Writes the group's moments from the sums, over its threads, of deviations from `origin`. */
DEVICE void leave_moments(GLOBAL struct smalti_moments *moments, double count, double origin, double sum,
			  double squares)
{
	if (THREAD == 0) {
		const double offset = count > 0 ? sum / count : 0;
		moments[GROUP].count = count;
		moments[GROUP].mean = origin + offset;
		moments[GROUP].m2 = squares - sum * offset;
	}
}

/* A group for each row. */
KERNEL(distances)(GLOBAL const float *x, GLOBAL const float *y, GLOBAL float *sums, struct distances_arguments a)
{
	LOCAL_ARRAY(double, room, 4 * SMALTI_DEVICE_THREADS);
	GLOBAL const float *left = x + (int64_t)GROUP * a.dim;
	GLOBAL const float *right = y + (int64_t)GROUP * a.dim;
	double all[4] = {0, 0, 0, 0};
	for (int64_t i = THREAD; i < a.dim; i += THREADS) {
		const double value = i % a.group < a.used ? right[i] : 0;
		const double difference = i % a.group < a.used ? left[i] - value : 0;
		all[0] += fabs(difference);
		all[1] += fabs(value);
		all[2] += difference * difference;
		all[3] += value * value;
	}
	for (int i = 0; i < 4; i++) {
		const double sum = sum_once_double(all[i], room + i * SMALTI_DEVICE_THREADS);
		if (THREAD == 0)
			sums[4 * (int64_t)GROUP + i] = (float)sum;
	}
}

/* Of x [pixels, channels], moments [parts, groups] of as many parts of the pixels: the sums of deviations from the
 * group's first element, whose squares do not cancel when the mean is large. Each thread takes the same elements on
 * every run. PoCL 3.1 makes `room` static if it is used twice. */
KERNEL(band_moments)(GLOBAL const float *x, GLOBAL struct smalti_moments *moments, struct moments_arguments a)
{
	LOCAL_ARRAY(double, room, SMALTI_DEVICE_THREADS);
	LOCAL_ARRAY(double, more, SMALTI_DEVICE_THREADS);
	const struct band_part band = part_of_group(&a);
	const int64_t width = a.channels / a.groups, count = band.pixels * width;
	const double origin = count > 0 ? x[band.first] : 0;
	double sum = 0, squares = 0;
	for (int64_t i = THREAD; i < count; i += THREADS) {
		const double deviation = x[i / width * a.channels + band.first + i % width] - origin;
		sum += deviation;
		squares += deviation * deviation;
	}
	sum = group_sum_double(sum, room);
	squares = group_sum_double(squares, more);
	leave_moments(moments, (double)count, origin, sum, squares);
}

/* Does the same where a group has 4·2^shift channels, at most 4·THREADS: a thread has four of them, in every
 * (THREADS >> shift)-th pixel. */
KERNEL(band_moments_fours)(GLOBAL const float *x, GLOBAL struct smalti_moments *moments,
			   struct moments_arguments a)
{
	LOCAL_ARRAY(double, room, SUM_ROOM(SMALTI_DEVICE_THREADS));
	LOCAL_ARRAY(double, more, SUM_ROOM(SMALTI_DEVICE_THREADS));
	const struct band_part band = part_of_group(&a);
	const int pixels = (int)band.pixels, step = THREADS >> a.shift;
	const int64_t row = a.channels / 4, first = band.first / 4 + (THREAD & ((1 << a.shift) - 1));
	const double origin = pixels > 0 ? x[band.first] : 0;
	double sum = 0, squares = 0;
	for (int pixel = THREAD >> a.shift; pixel < pixels; pixel += step) {
		float values[4];
		load_four(x, first + pixel * row, values);
		UNROLL
		for (int i = 0; i < 4; i++) {
			const double deviation = values[i] - origin;
			sum += deviation;
			squares += deviation * deviation;
		}
	}
	sum = sum_once_double(sum, room);
	squares = sum_once_double(squares, more);
	leave_moments(moments, (double)((int64_t)pixels << a.shift << 2), origin, sum, squares);
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

/* Does the same in eights of channels, of which a thread has one. */
DEVICE void apply_eight(enum smalti_dtype dtype, GLOBAL const float *x, GLOBAL const float *coefficients,
			GLOBAL void *y, const struct groupnorm_arguments *a)
{
	const uint i = (uint)INDEX, eights = (uint)a->channels / 8, channel = i % eights;
	float values[8], factors[8], offsets[8];
	if (INDEX >= a->pixels * eights)
		return;
	load_eight(x, SMALTI_F32, i, values);
	load_eight(coefficients, SMALTI_F32, channel, factors);
	load_eight(coefficients, SMALTI_F32, eights + channel, offsets);
	UNROLL
	for (int j = 0; j < 8; j++)
		values[j] = fma(factors[j], values[j], offsets[j]);
	store_eight(y, dtype, i, values);
}

KERNEL_FORMS(groupnorm_apply, (GLOBAL const float *x, GLOBAL const float *coefficients, GLOBAL void *y,
	struct groupnorm_arguments a),
	apply_eight(dtype, x, coefficients, y, &a);)
