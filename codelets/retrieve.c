/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/contrast.h"
#include "kernels/matches.h"
#include "kernels/scratch.h"

/* Blocks of scores stay in the L2 cache. */
enum { ROWS = 1024, SCORES = 1 << 17 };

int smalti_cpu_search_rows(const struct search_rows_data *data, const struct search_rows_arguments *a,
			   struct smalti_error *error)
{
	const int64_t rows = smalti_max(SCORES / a->queries, 64);
	const int64_t block = smalti_min(smalti_min(rows, ROWS), a->rows);
	float *scores =
	    smalti_scratch(SMALTI_SCRATCH_SCORES, a->queries * block * (int64_t)sizeof(float), error);
	if (!scores)
		return -1;
	if (!a->more)
		smalti_matches_clear(a->queries, a->top, data->matches);
	const struct smalti_raw_columns queries = {data->queries, a->dim, a->dim};
	for (int64_t at = 0; at < a->rows; at += block) {
		const int64_t count = smalti_min(block, a->rows - at);
		const struct smalti_matmul matmul = {.rows = a->queries,
						     .in = a->dim,
						     .out = count,
						     .compute = SMALTI_F32,
						     .result = SMALTI_F32};
		const struct smalti_raw_weight vectors = {(const float *)data->vectors + at * a->dim,
							  SMALTI_F32, a->dim};
		if (smalti_matmul_raw(&matmul, &queries, 1, &vectors, NULL, NULL, block, scores, error) < 0)
			return -1;
		smalti_matches_offer(a->queries, a->top, a->first + at, count, scores, block, data->matches);
	}
	return 0;
}

static struct smalti_contrast contrast_of(const struct contrast_sums_arguments *a, const float *temperature)
{
	return (struct smalti_contrast){.rows = a->rows,
					.first = a->first,
					.batch = a->batch,
					.dim = a->dim,
					.temperature = *temperature};
}

int smalti_cpu_contrast_sums(const struct contrast_sums_data *data, const struct contrast_sums_arguments *a,
			     struct smalti_error *error)
{
	const struct smalti_contrast contrast = contrast_of(a, data->temperature);
	return smalti_contrast_sums(&contrast, (const float *)data->x + a->first * a->dim, data->y, data->lse,
				    error);
}

int smalti_cpu_contrast_gradient(const struct contrast_gradient_data *data,
				 const struct contrast_gradient_arguments *a, struct smalti_error *error)
{
	const struct smalti_contrast contrast = contrast_of(a, data->temperature);
	return smalti_contrast_gradient(&contrast, (const float *)data->x + a->first * a->dim, data->y,
					data->lse, data->y_lse, data->gx, data->parts, error);
}

int smalti_cpu_clamp(const struct clamp_data *data, const struct clamp_arguments *a,
		     struct smalti_error *error)
{
	(void)error;
	float *y = data->y;
	for (int64_t i = 0; i < a->count; i++)
		y[i] = y[i] > a->max ? a->max : y[i];
	return 0;
}
