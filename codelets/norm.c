/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/groupnorm.h"
#include "kernels/kernels.h"
#include "kernels/rows.h"
#include "kernels/scratch.h"

int smalti_cpu_rmsnorm(const struct rmsnorm_data *data, const struct rmsnorm_arguments *a,
		       struct smalti_error *error)
{
	struct smalti_row_parts parts = {.x = data->x, .columns = a->columns, .first = a->first_row};
	while (parts.count < SMALTI_MANY && data->x[parts.count])
		parts.count++;
	return smalti_rmsnorm_parts(&parts, a->rows, a->dim, a->epsilon, data->weight, a->dtype, data->y,
				    error);
}

int smalti_cpu_merge_moments(const struct merge_moments_data *data, const struct merge_moments_arguments *a,
			     struct smalti_error *error)
{
	(void)error;
	struct smalti_moments *merged = data->merged;
	for (int64_t group = 0; group < a->groups; group++)
		merged[group] = (struct smalti_moments){0, 0, 0};
	for (int part = 0; part < SMALTI_MANY && data->parts[part]; part++)
		smalti_moments_merge(a->groups, data->parts[part], merged);
	return 0;
}

int smalti_cpu_groupnorm(const struct groupnorm_data *data, const struct groupnorm_arguments *a,
			 struct smalti_error *error)
{
	float *coefficients =
	    smalti_scratch(SMALTI_SCRATCH_ROWS, 2 * a->channels * (int64_t)sizeof(float), error);
	if (!coefficients)
		return -1;
	smalti_groupnorm_coefficients(a->channels, a->groups, data->moments, a->epsilon, data->gamma,
				      data->beta, coefficients, coefficients + a->channels);
	smalti_kernels()->groupnorm_apply(a->pixels, a->channels, data->x, coefficients,
					  coefficients + a->channels, false, a->dtype, data->y);
	return 0;
}
