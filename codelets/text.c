/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/conditioning.h"
#include "kernels/kernels.h"

int smalti_cpu_embed_tokens(const struct embed_tokens_data *data, const struct embed_tokens_arguments *a,
			    struct smalti_error *error)
{
	const int32_t *ids = data->ids;
	const int64_t row_bytes = a->dim * smalti_dtype_bytes(a->dtype);
	const char *first = (const char *)data->table + a->first * smalti_dtype_bytes(a->dtype);
	for (int64_t token = 0; token < a->tokens; token++) {
		if (ids[token] < 0 || ids[token] >= a->vocabulary)
			return smalti_fail(
			    error, SMALTI_EFORMAT,
			    "token id %d does not exist: the text encoder knows %lld; do tokenizer and "
			    "text_encoder belong together?",
			    (int)ids[token], (long long)a->vocabulary);
		smalti_kernels()->convert(a->columns, a->dtype, first + ids[token] * row_bytes, SMALTI_F32,
					  (float *)data->y + token * a->columns);
	}
	return 0;
}

int smalti_cpu_relative_bias(const struct relative_bias_data *data, const struct relative_bias_arguments *a,
			     struct smalti_error *error)
{
	(void)error;
	smalti_relative_bias(a->heads, a->buckets, a->max_distance, a->reach, data->table, data->bias);
	return 0;
}
