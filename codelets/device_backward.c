/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

#include "base/dtype.h"

#define COLUMN_GROUPS(columns) (((columns) + SMALTI_SUM_COLUMNS - 1) / SMALTI_SUM_COLUMNS)

/* Prepares a matrix, contiguous in memory, as an operand of products. */
static int operand(struct smalti_device *device, enum smalti_device_slot slot,
		   const struct smalti_device_memory *x, int64_t rows, int64_t columns,
		   enum smalti_dtype dtype, enum smalti_dtype compute, struct smalti_device_matrix *matrix,
		   struct smalti_error *error)
{
	const struct operand_arguments a = {rows, columns, 0, columns, dtype, compute, compute};
	return smalti_device_operand(device, slot, x, &a, matrix, error);
}

int smalti_device_linear_input(struct smalti_device *device, const struct linear_input_memories *data,
			       const struct linear_input_arguments *a, struct smalti_error *error)
{
	const struct operand_arguments of_gy = {a->rows,    a->out,     a->first,  a->stride,
						SMALTI_F32, a->compute, a->compute};
	struct smalti_device_matrix gy, weight;
	if (smalti_device_operand(device, SMALTI_DEVICE_X, data->gy, &of_gy, &gy, error) < 0 ||
	    operand(device, SMALTI_DEVICE_WEIGHT, data->weight, a->out, a->in, a->dtype, a->compute, &weight,
		    error) < 0)
		return -1;
	const struct smalti_device_product product = {.rows = a->rows,
						      .in = a->out,
						      .out = a->in,
						      .x_first = gy.first,
						      .x_stride = gy.stride,
						      .w_stride = weight.stride,
						      .y_stride = a->in,
						      .turned_w = true,
						      .adds = a->add,
						      .dtype = gy.dtype};
	return smalti_device_product(device, &product, gy.memory, weight.memory, data->gx, error);
}

int smalti_device_linear_weight(struct smalti_device *device, const struct linear_weight_memories *data,
				const struct linear_weight_arguments *a, struct smalti_error *error)
{
	const struct operand_arguments of_gy = {a->rows,    a->out,     a->first,  a->stride,
						SMALTI_F32, a->compute, a->compute};
	const struct smalti_device_memory *const summed[] = {data->gy, data->gbias};
	struct smalti_device_matrix gy, x;
	if (data->gbias &&
	    smalti_device_groups(device, "gradient_sums", COLUMN_GROUPS(a->out), summed, a, error) < 0)
		return -1;
	if (smalti_device_operand(device, SMALTI_DEVICE_X, data->gy, &of_gy, &gy, error) < 0 ||
	    operand(device, SMALTI_DEVICE_WEIGHT, data->x, a->rows, a->in, a->dtype, a->compute, &x, error) <
		0)
		return -1;
	const struct smalti_device_product product = {.rows = a->out,
						      .in = a->rows,
						      .out = a->in,
						      .x_first = gy.first,
						      .x_stride = gy.stride,
						      .w_stride = x.stride,
						      .y_stride = a->in,
						      .turned_x = true,
						      .turned_w = true,
						      .adds = a->add,
						      .dtype = gy.dtype};
	return smalti_device_product(device, &product, gy.memory, x.memory, data->gweight, error);
}

int smalti_device_ln_modulate_backward(struct smalti_device *device,
				       const struct ln_modulate_backward_memories *data,
				       const struct ln_modulate_backward_arguments *a,
				       struct smalti_error *error)
{
	const struct smalti_device_memory *normals = smalti_device_scratch(
	    device, SMALTI_DEVICE_COEFFICIENTS, a->rows * (int64_t)sizeof(struct smalti_normal), error);
	const struct smalti_device_memory *const rows[] = {data->x, data->modulation, data->gy, data->gx,
							   normals};
	const struct smalti_device_memory *const columns[] = {data->x, data->gy, normals, data->gmodulation};
	if (!normals || smalti_device_groups(device, "ln_modulate_rows", a->rows, rows, a, error) < 0)
		return -1;
	return smalti_device_groups(device, "ln_modulate_columns", COLUMN_GROUPS(a->dim), columns, a, error);
}

/* Attention: for some queries and all heads, the scores and the gradients of their weights; then the three
 * products of these. */

struct attending {
	const struct attention_backward_memories *data;
	const struct attention_backward_arguments *a;
	struct smalti_device_matrix q, k, v, gy;
	const struct smalti_device_memory *deltas;
	const struct smalti_device_memory *scores;  /* f32 [2, heads, queries, keys] */
	const struct smalti_device_memory *weights; /* as the products' operands */
	int64_t first, queries;                     /* the current ones */
};

static int64_t scores_of(const struct attending *t)
{
	return t->a->heads * t->queries * t->a->keys;
}

/* Computes [queries, keys] = x·wᵀ for each head. */
static int score(struct smalti_device *device, const struct attending *t,
		 const struct smalti_device_matrix *x, const struct smalti_device_matrix *w, int64_t y_first,
		 struct smalti_error *error)
{
	const struct smalti_device_product product = {.rows = t->queries,
						      .in = t->a->head_dim,
						      .out = t->a->keys,
						      .x_first = t->first * x->stride,
						      .x_stride = x->stride,
						      .w_first = w->first,
						      .w_stride = w->stride,
						      .y_first = y_first,
						      .y_stride = t->a->keys,
						      .count = t->a->heads,
						      .x_step = t->a->head_dim,
						      .w_step = t->a->head_dim,
						      .y_step = t->queries * t->a->keys,
						      .dtype = x->dtype};
	return smalti_device_product(device, &product, x->memory, w->memory, t->scores, error);
}

/* Adds weightsᵀ·w to the gradient [keys, head_dim] of k or v, which is like `of`, for each head. */
static int add_to_keys(struct smalti_device *device, const struct attending *t, int64_t first,
		       const struct smalti_device_matrix *w, const struct smalti_device_matrix *of,
		       struct smalti_error *error)
{
	const struct smalti_device_product product = {.rows = t->a->keys,
						      .in = t->queries,
						      .out = t->a->head_dim,
						      .x_first = first,
						      .x_stride = t->a->keys,
						      .w_first = t->first * w->stride,
						      .w_stride = w->stride,
						      .y_first = of->first,
						      .y_stride = of->stride,
						      .turned_x = true,
						      .turned_w = true,
						      .count = t->a->heads,
						      .x_step = t->queries * t->a->keys,
						      .w_step = t->a->head_dim,
						      .y_step = t->a->head_dim,
						      .adds = t->a->add_keys || t->first > 0,
						      .dtype = w->dtype};
	return smalti_device_product(device, &product, t->weights, w->memory, t->data->gkv, error);
}

static int add_to_queries(struct smalti_device *device, const struct attending *t, struct smalti_error *error)
{
	const int64_t width = t->a->heads * t->a->head_dim;
	const struct smalti_device_product product = {.rows = t->queries,
						      .in = t->a->keys,
						      .out = t->a->head_dim,
						      .x_first = scores_of(t),
						      .x_stride = t->a->keys,
						      .w_stride = t->k.stride,
						      .y_first = t->first * width,
						      .y_stride = width,
						      .turned_w = true,
						      .count = t->a->heads,
						      .x_step = t->queries * t->a->keys,
						      .w_step = t->a->head_dim,
						      .y_step = t->a->head_dim,
						      .adds = t->a->add_queries,
						      .dtype = t->k.dtype};
	return smalti_device_product(device, &product, t->weights, t->k.memory, t->data->gq, error);
}

static int attend_queries(struct smalti_device *device, const struct attending *t, struct smalti_error *error)
{
	const struct attention_weights_arguments weights = {t->a->heads, t->queries,    t->a->keys,
							    t->first,    t->a->queries, t->a->dtype,
							    t->q.dtype,  t->a->scale};
	const struct smalti_device_memory *const buffers[] = {t->scores, t->data->lse, t->deltas, t->weights};
	if (score(device, t, &t->q, &t->k, 0, error) < 0 ||
	    score(device, t, &t->gy, &t->v, scores_of(t), error) < 0 ||
	    smalti_device_elements(device, "attention_weights", scores_of(t), buffers, &weights, error) < 0)
		return -1;
	if (add_to_keys(device, t, 0, &t->gy, &t->v, error) < 0 ||
	    add_to_keys(device, t, scores_of(t), &t->q, &t->k, error) < 0)
		return -1;
	return add_to_queries(device, t, error);
}

static int take_operands(struct smalti_device *device, struct attending *t, struct smalti_error *error)
{
	const struct attention_backward_arguments *a = t->a;
	const int64_t width = a->heads * a->head_dim;
	if (operand(device, SMALTI_DEVICE_X, t->data->q, a->queries, width, a->dtype, a->dtype, &t->q,
		    error) < 0 ||
	    operand(device, SMALTI_DEVICE_WEIGHT, t->data->kv, a->keys, 2 * width, a->dtype, a->dtype, &t->k,
		    error) < 0)
		return -1;
	t->v = t->k;
	t->v.first += width;
	return operand(device, SMALTI_DEVICE_GRADIENT, t->data->gy, a->queries, width, SMALTI_F32, a->dtype,
		       &t->gy, error);
}

/* Takes scratch for the scores of `queries` queries. */
static int take_scores(struct smalti_device *device, struct attending *t, int64_t queries,
		       struct smalti_error *error)
{
	const int64_t scores = 2 * t->a->heads * queries * t->a->keys;
	t->scores = t->weights =
	    smalti_device_scratch(device, SMALTI_DEVICE_PRODUCT, scores * (int64_t)sizeof(float), error);
	if (t->scores && t->q.dtype != SMALTI_F32)
		t->weights = smalti_device_scratch(device, SMALTI_DEVICE_ROUNDED,
						   scores * smalti_dtype_bytes(t->q.dtype), error);
	return t->scores && t->weights ? 0 : -1;
}

int smalti_device_attention_backward(struct smalti_device *device,
				     const struct attention_backward_memories *data,
				     const struct attention_backward_arguments *a, struct smalti_error *error)
{
	struct attending t = {.data = data, .a = a};
	const int64_t room = smalti_device_room(device) / (2 * a->heads * a->keys * (int64_t)sizeof(float));
	const int64_t step = room < 1 ? 1 : room < a->queries ? room : a->queries;
	t.deltas = smalti_device_scratch(device, SMALTI_DEVICE_COEFFICIENTS,
					 a->heads * a->queries * (int64_t)sizeof(float), error);
	const struct smalti_device_memory *const summed[] = {data->y, data->gy, t.deltas};
	if (!t.deltas ||
	    smalti_device_elements(device, "attention_deltas", a->heads * a->queries, summed, a, error) < 0)
		return -1;
	if (take_operands(device, &t, error) < 0 || take_scores(device, &t, step, error) < 0)
		return -1;
	for (; t.first < a->queries; t.first += step) {
		t.queries = step < a->queries - t.first ? step : a->queries - t.first;
		if (attend_queries(device, &t, error) < 0)
			return -1;
	}
	return 0;
}
