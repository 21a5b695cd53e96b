/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/conditioning.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"

int smalti_cpu_sinusoid(const struct sinusoid_data *data, const struct sinusoid_arguments *a,
			struct smalti_error *error)
{
	(void)error;
	const float *values = data->values;
	for (int64_t row = 0; row < a->rows; row++)
		smalti_sinusoid(values[row], (float *)data->y + row * SMALTI_SINUSOID_SIZE);
	return 0;
}

int smalti_cpu_silu(const struct silu_data *data, const struct silu_arguments *a, struct smalti_error *error)
{
	(void)error;
	smalti_silu(a->count, data->x, SMALTI_F32, data->y);
	return 0;
}

int smalti_cpu_add_row(const struct add_row_data *data, const struct add_row_arguments *a,
		       struct smalti_error *error)
{
	(void)error;
	for (int64_t row = 0; row < a->rows; row++) {
		float *y = (float *)data->y + row * a->dim;
		smalti_add(a->dim, y, data->row, y);
	}
	return 0;
}

int smalti_cpu_modulation(const struct modulation_data *data, const struct modulation_arguments *a,
			  struct smalti_error *error)
{
	(void)error;
	const float *table = data->table, *embedding = data->embedding;
	embedding += a->step * a->period * a->dim;
	for (int64_t row = 0; row < a->rows; row++)
		smalti_add(a->dim, table + row * a->dim, embedding + row % a->period * a->dim,
			   (float *)data->y + row * a->dim);
	return 0;
}

int smalti_cpu_positions(const struct positions_data *data, const struct positions_arguments *a,
			 struct smalti_error *error)
{
	(void)error;
	smalti_positions(a->columns, a->rows, a->dim, a->base, a->interpolation_scale, data->table);
	return 0;
}

/* Adds to each token what its column and its row have in the position table. */
static void add_positions(const struct patch_embed_arguments *a, const float *table, float *y)
{
	const int64_t half = a->out / 2;
	for (int64_t n = a->first; n < a->first + a->rows; n++, y += a->out) {
		smalti_add(half, y, table + n % a->columns * half, y);
		smalti_add(half, y + half, table + (a->columns + n / a->columns) * half, y + half);
	}
}

int smalti_cpu_patch_embed(const struct patch_embed_data *data, const struct patch_embed_arguments *a,
			   struct smalti_error *error)
{
	const int64_t count = a->rows * a->in;
	float *scaled = smalti_scratch(SMALTI_SCRATCH_ROWS, count * (int64_t)sizeof(float), error);
	if (!scaled)
		return -1;
	for (int64_t i = 0; i < count; i++)
		scaled[i] = ((const float *)data->x)[i] * a->input_scale;
	const struct smalti_matmul matmul = {a->rows,    a->in,      a->out,
					     SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE};
	if (smalti_matmul(&matmul, scaled, data->weight, data->bias, NULL, data->y, error) < 0)
		return -1;
	add_positions(a, data->positions, data->y);
	return 0;
}
