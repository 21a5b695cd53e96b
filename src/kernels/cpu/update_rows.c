/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/update_rows.h"
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/vector.h"

/* A vector's lanes in double: the first half of them, and the second. */
typedef double dvec __attribute__((vector_size(VEC_BYTES)));
typedef float half_vec __attribute__((vector_size(VEC_BYTES / 2)));
struct wide {
	dvec half[2];
};

INLINE struct wide widen(vec value)
{
	half_vec halves[2];
	memcpy(halves, &value, sizeof(halves));
	return (struct wide){
	    {__builtin_convertvector(halves[0], dvec), __builtin_convertvector(halves[1], dvec)}};
}

INLINE struct wide plus(struct wide a, struct wide b)
{
	return (struct wide){{a.half[0] + b.half[0], a.half[1] + b.half[1]}};
}

INLINE double sum_of(struct wide value)
{
	double lanes[LANES], sum = 0;
	memcpy(lanes, &value, sizeof(lanes));
	for (int i = 0; i < LANES; i++)
		sum += lanes[i];
	return sum;
}

/* Computes sums[0 … LANES − 1] += value. */
INLINE void add_to(double *sums, struct wide value)
{
	struct wide before;
	memcpy(&before, sums, sizeof(before));
	before = plus(before, value);
	memcpy(sums, &before, sizeof(before));
}

INLINE vec floats(const float *x, int64_t i, int64_t count)
{
	return vec_read(SMALTI_F32, x, i, count - i);
}

void FOR_ISA(smalti_adamw_rows)(const struct smalti_adamw_factors *f, int64_t count, const float *gradient,
				float *value, float *mean, float *square)
{
	for (int64_t i = 0; i < count; i += LANES) {
		const vec g = f->gradient * floats(gradient, i, count);
		vec m = floats(mean, i, count), q = floats(square, i, count);
		m += f->new_mean * (g - m);
		q = f->old_square * q + f->new_square * (g * g);
		const vec v =
		    f->decay * floats(value, i, count) - f->rate * (m / (vec_sqrt(q) / f->root + f->epsilon));
		vec_write(SMALTI_F32, mean, i, count - i, m);
		vec_write(SMALTI_F32, square, i, count - i, q);
		vec_write(SMALTI_F32, value, i, count - i, v);
	}
}

void FOR_ISA(smalti_average_rows)(int64_t count, float part, const float *value, float *average)
{
	for (int64_t i = 0; i < count; i += LANES) {
		const vec a = floats(average, i, count);
		vec_write(SMALTI_F32, average, i, count - i, a - part * (a - floats(value, i, count)));
	}
}

double FOR_ISA(smalti_square_row)(int64_t count, const float *x)
{
	struct wide sum = {{{0}}};
	for (int64_t i = 0; i < count; i += LANES) {
		const struct wide wide = widen(floats(x, i, count));
		sum = plus(sum, (struct wide){{wide.half[0] * wide.half[0], wide.half[1] * wide.half[1]}});
	}
	return sum_of(sum);
}

double FOR_ISA(smalti_came_squares)(int64_t count, float factor, const float *gradient, double *sums)
{
	struct wide sum = {{{0}}};
	for (int64_t i = 0; i < count; i += LANES) {
		const vec g = factor * floats(gradient, i, count);
		const struct wide square = widen(g * g);
		sum = plus(sum, square);
		add_to(sums + i, square);
	}
	return sum_of(sum);
}

double FOR_ISA(smalti_came_steps)(int64_t count, float factor, const float *gradient, const float *columns)
{
	struct wide sum = {{{0}}};
	for (int64_t i = 0; i < count; i += LANES) {
		const vec step = factor * floats(gradient, i, count) * floats(columns, i, count);
		sum = plus(sum, widen(step * step));
	}
	return sum_of(sum);
}

double FOR_ISA(smalti_came_means)(int64_t count, float factor, float beta, const float *gradient,
				  const float *columns, float *mean, double *sums)
{
	struct wide sum = {{{0}}};
	for (int64_t i = 0; i < count; i += LANES) {
		const vec step = factor * floats(gradient, i, count) * floats(columns, i, count);
		const vec m = beta * floats(mean, i, count) + (1 - beta) * step;
		const struct wide square = widen((step - m) * (step - m));
		vec_write(SMALTI_F32, mean, i, count - i, m);
		sum = plus(sum, square);
		add_to(sums + i, square);
	}
	return sum_of(sum);
}

void FOR_ISA(smalti_came_move)(int64_t count, float decay, float factor, const float *mean,
			       const float *columns, float *value)
{
	for (int64_t i = 0; i < count; i += LANES) {
		const vec step = factor * floats(mean, i, count) * floats(columns, i, count);
		vec_write(SMALTI_F32, value, i, count - i, decay * floats(value, i, count) - step);
	}
}
