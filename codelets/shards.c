/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/attention.h"
#include "kernels/kernels.h"
#include "kernels/matmul_w8a8.h"
#include "kernels/scratch.h"

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

/* Returns the part of a matrix [*, in] from row `row` and column `column` on. */
static struct smalti_raw_weight part_of(const void *matrix, enum smalti_dtype dtype, int64_t in, int64_t row,
					int64_t column)
{
	const int64_t stride = smalti_raw_stride(dtype, in);
	const int64_t at = (row * stride + column) * smalti_dtype_bytes(dtype);
	return (struct smalti_raw_weight){(const char *)matrix + at, dtype, stride};
}

/* Computes y = epilogue(x·Wᵀ) with x [rows, in] in the dtype of the products. */
static int multiply(const struct smalti_matmul *matmul, const void *x, const struct smalti_raw_weight *weight,
		    bool rounds_x, const void *operand, void *y, struct smalti_error *error)
{
	const struct smalti_raw_columns all = {x, matmul->in, matmul->in};
	if (rounds_x)
		return smalti_matmul_w8a8(matmul, matmul->compute, x, weight->data, NULL, operand, y, error);
	return smalti_matmul_raw(matmul, &all, 1, weight, NULL, operand, matmul->out, y, error);
}

double smalti_attend_heads_flops(const struct attend_heads_arguments *a)
{
	const double columns = (double)a->heads * (double)a->head_dim;
	return 6.0 * (double)a->tokens * (double)a->in * columns + 4.0 * (double)a->pairs * columns;
}

double smalti_attend_heads_bytes(const struct attend_heads_arguments *a)
{
	const int64_t columns = a->heads * a->head_dim;
	double sum = smalti_bytes(a->compute, a->tokens, a->in + columns);
	for (int i = 0; i < 3; i++)
		sum += smalti_bytes(a->dtype[i], columns, a->in);
	return sum;
}

/* Computes the attention of the captions, one after the other; q, k and v are [tokens, columns] each. */
static int attend(const struct attend_heads_data *data, const struct attend_heads_arguments *a,
		  const char *const qkv[3], struct smalti_error *error)
{
	const int64_t columns = a->heads * a->head_dim, length = 2 * a->bias_reach - 1;
	const int64_t row_bytes = columns * smalti_dtype_bytes(a->compute);
	const int64_t whole[2] = {0, a->tokens}, *starts = data->starts ? data->starts : whole;
	const int64_t captions = data->starts ? a->captions : 1;
	for (int64_t i = 0; i < captions; i++) {
		const int64_t tokens = starts[i + 1] - starts[i], at = starts[i] * row_bytes;
		const struct smalti_attention attention = {
		    .queries = tokens,
		    .blocks = 1,
		    .heads = a->heads,
		    .head_dim = a->head_dim,
		    .q_stride = columns,
		    .k_stride = columns,
		    .v_stride = columns,
		    .dtype = a->compute,
		    .scale = 1,
		    .first = true,
		    .last = true,
		    .bias = (const float *)data->bias + a->first_head * length,
		    .bias_length = length,
		    .bias_origin = a->bias_reach - 1,
		};
		const struct smalti_keys keys = {tokens - a->padding, qkv[1] + at, qkv[2] + at};
		if (smalti_attention(&attention, qkv[0] + at, &keys, NULL, (char *)data->y + at, error) < 0)
			return -1;
	}
	return 0;
}

int smalti_cpu_attend_heads(const struct attend_heads_data *data, const struct attend_heads_arguments *a,
			    struct smalti_error *error)
{
	const int64_t columns = a->heads * a->head_dim;
	const int64_t bytes = a->tokens * columns * smalti_dtype_bytes(a->compute);
	const void *const matrices[3] = {data->q, data->k, data->v};
	const struct smalti_matmul matmul = {
	    .rows = a->tokens, .in = a->in, .out = columns, .compute = a->compute, .result = a->compute};
	char *all = smalti_scratch(SMALTI_SCRATCH_SHARD, 3 * bytes, error);
	if (!all)
		return -1;
	for (int i = 0; i < 3; i++) {
		const struct smalti_raw_weight weight =
		    part_of(matrices[i], a->dtype[i], a->in, (a->first_head - a->held) * a->head_dim, 0);
		if (multiply(&matmul, data->x, &weight, a->rounds_x, NULL, all + i * bytes, error) < 0)
			return -1;
	}
	const char *const qkv[3] = {all, all + bytes, all + 2 * bytes};
	return attend(data, a, qkv, error);
}

int smalti_cpu_geglu(const struct geglu_data *data, const struct geglu_arguments *a,
		     struct smalti_error *error)
{
	const int64_t bytes = a->rows * a->columns * smalti_dtype_bytes(a->result);
	struct smalti_matmul matmul = {.rows = a->rows,
				       .in = a->in,
				       .out = a->columns,
				       .compute = a->compute,
				       .result = a->result,
				       .epilogue = SMALTI_EPILOGUE_GELU};
	const struct smalti_raw_weight gate = part_of(data->gate, a->dtype[0], a->in, a->first, 0);
	const struct smalti_raw_weight weight = part_of(data->weight, a->dtype[1], a->in, a->first, 0);
	void *factor = smalti_scratch(SMALTI_SCRATCH_SHARD, bytes, error);
	if (!factor || multiply(&matmul, data->x, &gate, a->rounds_x, NULL, factor, error) < 0)
		return -1;
	matmul.epilogue = SMALTI_EPILOGUE_MULTIPLY;
	return multiply(&matmul, data->x, &weight, a->rounds_x, factor, data->y, error);
}

int smalti_cpu_sum_shards(const struct sum_shards_data *data, const struct sum_shards_arguments *a,
			  struct smalti_error *error)
{
	const struct smalti_matmul matmul = {.rows = a->rows,
					     .in = a->in,
					     .out = a->columns,
					     .compute = a->compute,
					     .result = SMALTI_F32,
					     .epilogue = SMALTI_EPILOGUE_ADD};
	const struct smalti_raw_weight weight = part_of(data->weight, a->dtype, a->in, a->first, 0);
	struct smalti_raw_columns x[SMALTI_MANY];
	int parts = 0;
	for (; parts < SMALTI_MANY && data->x[parts]; parts++)
		x[parts] =
		    (struct smalti_raw_columns){data->x[parts], a->x_columns[parts], a->x_columns[parts]};
	return smalti_matmul_raw(&matmul, x, parts, &weight, NULL, NULL, a->columns, data->y, error);
}
