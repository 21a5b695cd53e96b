/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/conditioning.h"
#include "kernels/rows.h"
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

int smalti_cpu_distances(const struct distances_data *data, const struct distances_arguments *a,
			 struct smalti_error *error)
{
	const float *x = data->x, *y = data->y;
	float *sums = data->sums;
	(void)error;
	for (int64_t row = 0; row < a->rows; row++, x += a->dim, y += a->dim, sums += 4)
		smalti_distances(a->dim, a->group, a->used, x, y, sums);
	return 0;
}

int smalti_cpu_patch_embed(const struct patch_embed_data *data, const struct patch_embed_arguments *a,
			   struct smalti_error *error)
{
	const int64_t count = a->rows * a->in;
	float *scaled = smalti_scratch(SMALTI_SCRATCH_ROWS, count * (int64_t)sizeof(float), error);
	if (!scaled)
		return -1;
	smalti_scale(count, data->x, a->input_scale, scaled);
	const struct smalti_matmul matmul = {a->rows,    a->in,      a->out,
					     SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE};
	if (smalti_matmul(&matmul, scaled, data->weight, data->bias, NULL, data->y, error) < 0)
		return -1;
	smalti_add_positions(a->first, a->rows, a->columns, a->out, data->positions, data->y);
	return 0;
}
