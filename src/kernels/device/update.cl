/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of parameters (kernels/optimizers.h) and sums of gradients. */

KERNEL(add)(GLOBAL const float *x, GLOBAL float *y, struct add_arguments a)
{
	if (INDEX < a.count)
		y[INDEX] += x[INDEX];
}

KERNEL(average)(GLOBAL const float *value, GLOBAL float *average, struct average_arguments a)
{
	if (INDEX < a.count)
		average[INDEX] -= (float)(1 - a.decay) * (average[INDEX] - value[INDEX]);
}

KERNEL(adamw_elements)(GLOBAL const float *gradient, GLOBAL float *value, GLOBAL float *mean,
		       GLOBAL float *square, struct adamw_elements_arguments a)
{
	const int64_t i = INDEX;
	if (i >= a.count)
		return;
	const float g = a.factors.gradient * gradient[i];
	const float m = mean[i] + a.factors.new_mean * (g - mean[i]);
	const float q = a.factors.old_square * square[i] + a.factors.new_square * (g * g);
	mean[i] = m;
	square[i] = q;
	value[i] =
	    a.factors.decay * value[i] - a.factors.rate * (m / (sqrt(q) / a.factors.root + a.factors.epsilon));
}

/* sums[group] = Σ x² of every GROUPS-th piece. */
KERNEL(square_sums)(GLOBAL const float *x, GLOBAL double *sums, struct square_sum_arguments a)
{
	LOCAL_ARRAY(double, room, SMALTI_DEVICE_THREADS);
	double sum = 0;
	for (int64_t i = INDEX; i < a.count; i += GROUPS * THREADS)
		sum += (double)x[i] * (double)x[i];
	sum = group_sum_double(sum, room);
	if (THREAD == 0)
		sums[GROUP] = sum;
}

/* The sum of doubles, for all threads of the only group. */
DEVICE double sum_of(GLOBAL const double *values, int64_t count, LOCAL double *room)
{
	double sum = 0;
	for (int64_t i = THREAD; i < count; i += THREADS)
		sum += values[i];
	return group_sum_double(sum, room);
}

KERNEL(sum_squares)(GLOBAL const double *sums, GLOBAL double *sum, struct sum_squares_arguments a)
{
	LOCAL_ARRAY(double, room, SMALTI_DEVICE_THREADS);
	const double all = sum_of(sums, a.count, room);
	if (THREAD == 0)
		sum[0] = a.factor * a.factor * all;
}

/* CAME: each kernel gets all that there is of a group of parameters. Rows are those of all parts, one behind
 * the other; `inverse` has the roots of the factors, of each matrix: of its rows, then of its columns. */
#define CAME_PARAMETERS                                                                                      \
	GLOBAL const float *gradient0, GLOBAL const float *gradient1, GLOBAL const float *gradient2,         \
	    GLOBAL float *value0, GLOBAL float *value1, GLOBAL float *value2, GLOBAL float *mean0,           \
	    GLOBAL float *mean1, GLOBAL float *mean2, GLOBAL float *factors, GLOBAL float *inverse,          \
	    GLOBAL double *sums, GLOBAL double *clip, struct came_pass_arguments a
#define PART(x, part) ((part) == 0 ? x##0 : (part) == 1 ? x##1 : x##2)

DEVICE int64_t came_rows_of(const struct smalti_came_shape *shape)
{
	return shape->parts * shape->rows;
}

/* Where row r of matrix b begins in its part. */
DEVICE int64_t came_row(const struct smalti_came_shape *shape, int64_t b, int64_t r)
{
	return (b * shape->rows + r % shape->rows) * shape->columns;
}

/* The step of an element before it is averaged. */
DEVICE float came_step(const struct smalti_came *came, float row, float column, double clip, float gradient)
{
	return (float)(came->gradient_scale * (double)row / clip) * gradient * column;
}

/* What is squared of an element: its gradient, how far the step is from its mean, or the step. */
DEVICE float came_value(const struct came_pass_arguments *a, float row, float column, double clip,
			float gradient, float mean)
{
	if (a->pass == SMALTI_CAME_GRADIENTS)
		return (float)a->of.came.gradient_scale * gradient;
	const float step =
	    came_step(&a->of.came, row, column, a->pass == SMALTI_CAME_STEPS ? 1 : clip, gradient);
	return a->pass == SMALTI_CAME_STEPS ? step : step - mean;
}

/* mean = β·mean + (1 − β)·step: a thread for each element. */
KERNEL(came_means)(CAME_PARAMETERS)
{
	const struct smalti_came_shape *shape = &a.of.shape;
	const int64_t rows = came_rows_of(shape), size = rows + shape->columns;
	const int64_t row = INDEX / shape->columns, column = INDEX % shape->columns;
	const int64_t b = row / rows, r = row % rows, at = came_row(shape, b, r) + column;
	const float beta = (float)a.of.came.betas[0];
	if (b >= shape->batch)
		return;
	GLOBAL const float *gradient = PART(gradient, r / shape->rows);
	GLOBAL float *mean = PART(mean, r / shape->rows);
	const float step = came_step(&a.of.came, inverse[b * size + r], inverse[b * size + rows + column],
				     clip[0], gradient[at]);
	mean[at] = beta * mean[at] + (1.f - beta) * step;
}

/* sums of squares over rows: a group for each. */
KERNEL(came_rows)(CAME_PARAMETERS)
{
	LOCAL_ARRAY(double, room, SMALTI_DEVICE_THREADS);
	const struct smalti_came_shape *shape = &a.of.shape;
	const int64_t rows = came_rows_of(shape), size = rows + shape->columns;
	const int64_t b = GROUP / rows, r = GROUP % rows, first = came_row(shape, b, r);
	GLOBAL const float *gradient = PART(gradient, r / shape->rows), *mean = PART(mean, r / shape->rows);
	double sum = 0;
	for (int64_t column = THREAD; column < shape->columns; column += THREADS) {
		const double value =
		    (double)came_value(&a, inverse[b * size + r], inverse[b * size + rows + column],
				       clip[0], gradient[first + column], mean[first + column]);
		sum += value * value;
	}
	sum = group_sum_double(sum, room);
	if (THREAD == 0)
		sums[a.pass == SMALTI_CAME_STEPS ? GROUP : b * size + r] = sum;
}

/* And over columns: a thread for each. */
KERNEL(came_columns)(CAME_PARAMETERS)
{
	const struct smalti_came_shape *shape = &a.of.shape;
	const int64_t rows = came_rows_of(shape), size = rows + shape->columns;
	const int64_t b = INDEX / shape->columns, column = INDEX % shape->columns;
	double sum = 0;
	if (b >= shape->batch)
		return;
	for (int64_t r = 0; r < rows; r++) {
		const int64_t at = came_row(shape, b, r) + column;
		GLOBAL const float *gradient = PART(gradient, r / shape->rows),
				   *mean = PART(mean, r / shape->rows);
		const double value =
		    (double)came_value(&a, inverse[b * size + r], inverse[b * size + rows + column],
				       clip[0], gradient[at], mean[at]);
		sum += value * value;
	}
	sums[b * size + rows + column] = sum;
}

/* means = β·means + (1 − β)·(sums / of + ε), for all threads of a group; the thread's part of the means' sum. */
DEVICE double came_average(const struct came_pass_arguments *a, GLOBAL const double *sums, int64_t count,
			   double of, GLOBAL float *means)
{
	const int which = a->pass == SMALTI_CAME_GRADIENTS ? 0 : 1;
	const double beta = a->of.came.betas[1 + which], epsilon = a->of.came.epsilons[which];
	double sum = 0;
	for (int64_t i = THREAD; i < count; i += THREADS) {
		means[i] = (float)(beta * (double)means[i] + (1 - beta) * (sums[i] / of + epsilon));
		sum += (double)means[i];
	}
	return sum;
}

/* The factors and their inverse roots: a group for each matrix. */
KERNEL(came_factors)(CAME_PARAMETERS)
{
	LOCAL_ARRAY(double, room, SMALTI_DEVICE_THREADS);
	const struct smalti_came_shape *shape = &a.of.shape;
	const int64_t rows = came_rows_of(shape), size = rows + shape->columns, first = GROUP * size;
	GLOBAL float *means = factors + first + (a.pass == SMALTI_CAME_GRADIENTS ? 0 : shape->batch * size);
	const double sum = came_average(&a, sums + first, rows, (double)shape->columns, means);
	const double mean = group_sum_double(sum, room) / (double)rows;
	came_average(&a, sums + first + rows, shape->columns, (double)rows, means + rows);
	for (int64_t i = THREAD; i < rows; i += THREADS)
		inverse[first + i] = (float)(1 / sqrt((double)means[i] / mean));
	for (int64_t i = rows + THREAD; i < size; i += THREADS)
		inverse[first + i] = (float)(1 / sqrt((double)means[i]));
}

/* What steps are divided by, from the sum of their squares. */
KERNEL(came_clip)(CAME_PARAMETERS)
{
	LOCAL_ARRAY(double, room, SMALTI_DEVICE_THREADS);
	const struct smalti_came_shape *shape = &a.of.shape;
	const int64_t elements = shape->batch * came_rows_of(shape) * shape->columns;
	const double all = sum_of(sums, a.sums, room);
	if (THREAD == 0)
		clip[0] = fmax(1.0, sqrt(all / (double)elements) / a.of.came.limit);
}

/* value = decay·value − rate·mean, by the roots of the factors: a thread for each element. */
KERNEL(came_move)(CAME_PARAMETERS)
{
	const struct smalti_came_shape *shape = &a.of.shape;
	const int64_t rows = came_rows_of(shape), size = rows + shape->columns;
	const int64_t row = INDEX / shape->columns, column = INDEX % shape->columns;
	const int64_t b = row / rows, r = row % rows, at = came_row(shape, b, r) + column;
	if (b >= shape->batch)
		return;
	GLOBAL const float *mean = PART(mean, r / shape->rows);
	GLOBAL float *value = PART(value, r / shape->rows);
	const float decay = (float)(1 - a.of.came.lr * a.of.came.weight_decay);
	const float step = (float)(a.of.came.lr * (double)inverse[b * size + r]) * mean[at] *
			   inverse[b * size + rows + column];
	value[at] = decay * value[at] - step;
}

/* Without factors: the squares of every element, and of the steps the sums of each group. */
KERNEL(came_squares)(CAME_PARAMETERS)
{
	LOCAL_ARRAY(double, room, SMALTI_DEVICE_THREADS);
	const struct smalti_came *came = &a.of.came;
	const int64_t count = a.of.shape.batch * a.of.shape.rows * a.of.shape.columns, part = INDEX / count;
	GLOBAL const float *gradient = PART(gradient, part);
	double sum = 0;
	if (part < a.of.shape.parts) {
		const double g = came->gradient_scale * (double)gradient[INDEX % count];
		factors[INDEX] = (float)(came->betas[1] * (double)factors[INDEX] +
					 (1 - came->betas[1]) * (g * g + came->epsilons[0]));
		sum = g * g / (double)factors[INDEX];
	}
	sum = group_sum_double(sum, room);
	if (THREAD == 0)
		sums[GROUP] = sum;
}

KERNEL(came_elements)(CAME_PARAMETERS)
{
	const struct smalti_came *came = &a.of.came;
	const int64_t count = a.of.shape.batch * a.of.shape.rows * a.of.shape.columns, part = INDEX / count;
	const int64_t i = INDEX % count;
	if (part >= a.of.shape.parts)
		return;
	GLOBAL const float *gradient = PART(gradient, part);
	GLOBAL float *mean = PART(mean, part), *value = PART(value, part);
	const double g = came->gradient_scale * (double)gradient[i];
	const double step = g / sqrt((double)factors[INDEX]) / clip[0];
	mean[i] = (float)(came->betas[0] * (double)mean[i] + (1 - came->betas[0]) * step);
	value[i] = (float)(1 - came->lr * came->weight_decay) * value[i] - (float)came->lr * mean[i];
}
#undef PART
#undef CAME_PARAMETERS
