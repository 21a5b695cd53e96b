/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/optimizers.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"

#include <math.h>

struct smalti_adamw_factors smalti_adamw_factors(const struct smalti_adamw *adamw)
{
	const double n = (double)adamw->step;
	return (struct smalti_adamw_factors){.gradient = (float)adamw->gradient_scale,
					     .decay = (float)(1 - adamw->lr * adamw->weight_decay),
					     .rate = (float)(adamw->lr / (1 - pow(adamw->betas[0], n))),
					     .root = (float)sqrt(1 - pow(adamw->betas[1], n)),
					     .epsilon = (float)adamw->epsilon,
					     .new_mean = (float)(1 - adamw->betas[0]),
					     .old_square = (float)adamw->betas[1],
					     .new_square = (float)(1 - adamw->betas[1])};
}

void smalti_adamw(const struct smalti_adamw *adamw, int64_t count, const float *gradient, float *value,
		  float *mean, float *square)
{
	const struct smalti_adamw_factors factors = smalti_adamw_factors(adamw);
	smalti_kernels()->adamw_rows(&factors, count, gradient, value, mean, square);
}

/* One update by CAME. Elements are ordered by batch, then part, then row and column. */
struct update {
	const struct smalti_came *came;
	const struct smalti_came_shape *shape;
	const float *const *gradient;
	float *const *value, *const *mean;
	int64_t rows;   /* of all parts */
	float *inverse; /* roots of the factors of each matrix: of its rows, then of its columns */
	double *sums;   /* a matrix's, by columns */
	double clip;    /* the divisor of the step */
};

int64_t smalti_came_factors(const struct smalti_came_shape *shape)
{
	if (shape->factored)
		return 2 * shape->batch * (shape->parts * shape->rows + shape->columns);
	return shape->parts * shape->batch * shape->rows * shape->columns;
}

/* Returns where row r of matrix b begins in *part. */
static int64_t row_of(const struct update *u, int64_t b, int64_t r, int *part)
{
	*part = (int)(r / u->shape->rows);
	return (b * u->shape->rows + r % u->shape->rows) * u->shape->columns;
}

static float *inverse_of(const struct update *u, int64_t b)
{
	return u->inverse + b * (u->rows + u->shape->columns);
}

/* Computes means = beta·means + (1 − beta)·(sums / of + epsilon), then inverse = (means / their mean, if
 * `normal`)^−½. */
static void put_factor(double beta, double epsilon, const double *sums, int64_t count, double of, bool normal,
		       float *means, float *inverse)
{
	double mean = 0;
	for (int64_t i = 0; i < count; i++) {
		means[i] = (float)(beta * (double)means[i] + (1 - beta) * (sums[i] / of + epsilon));
		mean += means[i] / (double)count;
	}
	for (int64_t i = 0; i < count; i++)
		inverse[i] = (float)(1 / sqrt(normal ? means[i] / mean : means[i]));
}

/* Returns the factor from a row's gradients to its step. */
static float row_factor(const struct update *u, float inverse)
{
	return (float)(u->came->gradient_scale * (double)inverse / u->clip);
}

/* Returns Σ over a row of squares, and adds each to its column's sum: of the gradient, or of the step's
 * difference from its mean, which it updates. */
typedef double row_squares(const struct update *u, int64_t b, int64_t r);

static double gradient_squares(const struct update *u, int64_t b, int64_t r)
{
	int part;
	const int64_t first = row_of(u, b, r, &part);
	return smalti_kernels()->came_squares(u->shape->columns, (float)u->came->gradient_scale,
					      u->gradient[part] + first, u->sums);
}

static double instability(const struct update *u, int64_t b, int64_t r)
{
	int part;
	const int64_t first = row_of(u, b, r, &part);
	const float *inverse = inverse_of(u, b);
	return smalti_kernels()->came_means(u->shape->columns, row_factor(u, inverse[r]),
					    (float)u->came->betas[0], u->gradient[part] + first,
					    inverse + u->rows, u->mean[part] + first, u->sums);
}

/* Computes the factors of matrix b from these squares, by β and ε number `which`, and their inverse roots. */
static void factor(const struct update *u, int64_t b, int which, row_squares *squares, float *factors)
{
	const double beta = u->came->betas[1 + which], epsilon = u->came->epsilons[which];
	const int64_t columns = u->shape->columns;
	double *rows = u->sums + columns + SMALTI_ROW_ROOM;
	memset(u->sums, 0, (size_t)columns * sizeof(*u->sums));
	for (int64_t r = 0; r < u->rows; r++)
		rows[r] = squares(u, b, r);
	float *inverse = inverse_of(u, b);
	put_factor(beta, epsilon, rows, u->rows, (double)columns, true, factors, inverse);
	put_factor(beta, epsilon, u->sums, columns, (double)u->rows, false, factors + u->rows,
		   inverse + u->rows);
}

static double clip_of(const struct update *u, double squares)
{
	const double count = (double)u->shape->batch * (double)u->rows * (double)u->shape->columns;
	return fmax(1, sqrt(squares / count) / u->came->limit);
}

static double step_squares(const struct update *u, int64_t b)
{
	const float *inverse = inverse_of(u, b);
	double sum = 0;
	for (int64_t r = 0; r < u->rows; r++) {
		int part;
		const int64_t first = row_of(u, b, r, &part);
		sum += smalti_kernels()->came_steps(u->shape->columns, row_factor(u, inverse[r]),
						    u->gradient[part] + first, inverse + u->rows);
	}
	return sum;
}

static float decay_of(const struct smalti_came *came)
{
	return (float)(1 - came->lr * came->weight_decay);
}

static void move(const struct update *u, int64_t b)
{
	const float *inverse = inverse_of(u, b);
	for (int64_t r = 0; r < u->rows; r++) {
		int part;
		const int64_t first = row_of(u, b, r, &part);
		smalti_kernels()->came_move(u->shape->columns, decay_of(u->came),
					    (float)(u->came->lr * (double)inverse[r]), u->mean[part] + first,
					    inverse + u->rows, u->value[part] + first);
	}
}

static void update_matrices(struct update *u, float *factors)
{
	const int64_t size = u->rows + u->shape->columns;
	double squares = 0;
	for (int64_t b = 0; b < u->shape->batch; b++) {
		factor(u, b, 0, gradient_squares, factors + b * size);
		squares += step_squares(u, b);
	}
	u->clip = clip_of(u, squares);
	factors += u->shape->batch * size;
	for (int64_t b = 0; b < u->shape->batch; b++) {
		factor(u, b, 1, instability, factors + b * size);
		move(u, b);
	}
}

static void update_elements(struct update *u, float *squares)
{
	const struct smalti_came *came = u->came;
	const int64_t count = u->shape->batch * u->shape->rows * u->shape->columns;
	const double betas[] = {came->betas[0], came->betas[1]};
	double sum = 0;
	for (int part = 0; part < u->shape->parts; part++)
		for (int64_t i = 0; i < count; i++) {
			const double g = came->gradient_scale * (double)u->gradient[part][i];
			float *square = &squares[part * count + i];
			*square = (float)(betas[1] * (double)*square +
					  (1 - betas[1]) * (g * g + came->epsilons[0]));
			sum += g * g / *square;
		}
	u->clip = clip_of(u, sum);
	for (int part = 0; part < u->shape->parts; part++)
		for (int64_t i = 0; i < count; i++) {
			const double g = came->gradient_scale * (double)u->gradient[part][i];
			const double step = g / sqrt(squares[part * count + i]) / u->clip;
			float *mean = &u->mean[part][i], *value = &u->value[part][i];
			*mean = (float)(betas[0] * (double)*mean + (1 - betas[0]) * step);
			*value = decay_of(came) * *value - (float)came->lr * *mean;
		}
}

int smalti_came(const struct smalti_came *came, const struct smalti_came_shape *shape,
		const float *const gradient[SMALTI_CAME_PARTS], float *const value[SMALTI_CAME_PARTS],
		float *const mean[SMALTI_CAME_PARTS], float *factors, struct smalti_error *error)
{
	struct update u = {.came = came,
			   .shape = shape,
			   .gradient = gradient,
			   .value = value,
			   .mean = mean,
			   .rows = shape->parts * shape->rows,
			   .clip = 1};
	if (!shape->factored) {
		update_elements(&u, factors);
		return 0;
	}
	const int64_t size = u.rows + shape->columns;
	const int64_t sums = size + SMALTI_ROW_ROOM;
	const int64_t bytes = sums * (int64_t)sizeof(double) + shape->batch * size * (int64_t)sizeof(float);
	u.sums = smalti_scratch(SMALTI_SCRATCH_ROWS, bytes, error);
	if (!u.sums)
		return -1;
	u.inverse = (float *)(u.sums + sums);
	update_matrices(&u, factors);
	return 0;
}

void smalti_average(int64_t count, double decay, const float *value, float *average)
{
	smalti_kernels()->average_rows(count, (float)(1 - decay), value, average);
}

double smalti_square_sum(int64_t count, double factor, const float *x)
{
	enum { PIECE = 4096 };
	double sum = 0;
	for (int64_t first = 0; first < count; first += PIECE)
		sum += smalti_kernels()->square_row(smalti_min(PIECE, count - first), x + first);
	return factor * factor * sum;
}
