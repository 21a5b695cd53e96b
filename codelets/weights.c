/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "codelets/codelets.h"
#include "kernels/conv.h"
#include "kernels/elementwise.h"

double smalti_widen_bytes(const struct widen_arguments *a)
{
	double sum = 0;
	for (int part = 0; part < 3; part++)
		sum += smalti_bytes(a->dtype[part], 1, a->count[part]) +
		       smalti_bytes(SMALTI_F32, 1, a->count[part]);
	return sum;
}

double smalti_pack_matmul_bytes(const struct pack_matmul_arguments *a)
{
	double sum = smalti_bytes(a->compute, a->in, a->out);
	for (int part = 0; part < 3; part++)
		sum += smalti_bytes(a->dtype[part], a->rows[part], a->in);
	return sum;
}

int smalti_cpu_widen(const struct widen_data *data, const struct widen_arguments *a,
		     struct smalti_error *error)
{
	(void)error;
	const void *const parts[3] = {data->part0, data->part1, data->part2};
	float *y = data->vector;
	for (int part = 0; part < 3 && parts[part]; y += a->count[part++])
		smalti_convert(a->count[part], a->dtype[part], parts[part], SMALTI_F32, y);
	return 0;
}

/* What is packed is not read in the file's form again, so its pages need not stay in this process. */
int smalti_cpu_pack_matmul(const struct pack_matmul_data *data, const struct pack_matmul_arguments *a,
			   struct smalti_error *error)
{
	const void *const given[3] = {data->part0, data->part1, data->part2};
	struct smalti_weight_part parts[3];
	int count = 0;
	for (; count < 3 && given[count]; count++)
		parts[count] = (struct smalti_weight_part){given[count], a->dtype[count], a->rows[count]};
	if (smalti_matmul_pack(a->in, a->out, a->compute, parts, count, data->packed, error) < 0)
		return -1;
	for (int i = 0; i < count; i++)
		smalti_map_drop(given[i], a->rows[i] * a->in * smalti_dtype_bytes(a->dtype[i]));
	return 0;
}

int smalti_cpu_pack_conv(const struct pack_conv_data *data, const struct pack_conv_arguments *a,
			 struct smalti_error *error)
{
	if (smalti_conv_pack(a->in, a->out, a->stride, a->compute, data->raw, a->dtype, data->packed, error) <
	    0)
		return -1;
	smalti_map_drop(data->raw, a->out * a->in * 9 * smalti_dtype_bytes(a->dtype));
	return 0;
}

int smalti_cpu_read_ahead(const struct read_ahead_data *data, const struct read_ahead_arguments *a,
			  struct smalti_error *error)
{
	(void)error;
	smalti_map_read_ahead(data->weight, a->bytes);
	return 0;
}

int smalti_cpu_drop_pages(const struct drop_pages_data *data, const struct drop_pages_arguments *a,
			  struct smalti_error *error)
{
	(void)error;
	smalti_map_drop(data->weight, a->bytes);
	return 0;
}
