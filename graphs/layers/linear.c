/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/linear.h"
#include "codelets/codelets.h"
#include "graphs/layers/low_rank.h"

/* Inserts the gradients of the weights: each part of a stacked matrix made its own columns of y. */
static void weight_backward(struct smalti_tape *tape, const struct smalti_record *r, struct smalti_tile *gy)
{
	const struct smalti_linear *linear = r->linear;
	struct smalti_tile *x = smalti_tape_tile(tape, r->x);
	int64_t first = 0;
	for (int i = 0; smalti_weight_part(linear->weight, i); i++) {
		bool add = false, add_bias = false;
		const int64_t out = smalti_weight_view(linear->weight, i)->shape[0];
		struct smalti_tile *weight = smalti_tape_weight(tape, linear->weight, i, &add);
		struct smalti_tile *bias =
		    linear->bias ? smalti_tape_weight(tape, linear->bias, i, &add_bias) : NULL;
		if (weight)
			smalti_insert(linear_weight, tape->task_group,
				      (.gy = gy, .x = x, .gweight = weight, .gbias = bias), .rows = r->x.rows,
				      .in = linear->in, .out = out, .stride = linear->out, .first = first,
				      .dtype = r->x.dtype, .compute = linear->compute, .add = add);
		first += out;
	}
}

static void input_backward(struct smalti_tape *tape, const struct smalti_record *r, struct smalti_tile *gy)
{
	const struct smalti_linear *linear = r->linear;
	struct smalti_tile *weight;
	int64_t first = 0;
	bool add;
	for (int i = 0; (weight = smalti_weight_part(linear->weight, i)); i++) {
		const struct smalti_tensor_view *part = smalti_weight_view(linear->weight, i);
		struct smalti_tile *gx = smalti_tape_into(tape, r->x, &add);
		if (!gx)
			return;
		smalti_insert(linear_input, tape->task_group, (.gy = gy, .weight = weight, .gx = gx),
			      .rows = r->x.rows, .in = linear->in, .out = part->shape[0],
			      .stride = linear->out, .first = first, .dtype = part->dtype,
			      .compute = linear->compute, .add = add);
		first += part->shape[0];
	}
}

static void linear_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	struct smalti_tile *gy = smalti_tape_gradient(tape, r->y);
	weight_backward(tape, r, gy);
	input_backward(tape, r, gy);
}

static const struct smalti_layer linear_layer = {NULL, linear_backward};

static void record(struct smalti_tape *tape, const struct smalti_linear *linear, struct smalti_value x,
		   bool adds, struct smalti_value y)
{
	const struct smalti_record r = {
	    .layer = &linear_layer, .x = x, .y = y, .adds = adds, .linear = linear};
	smalti_tape_reads(tape, x);
	smalti_tape_record(tape, &r);
}

/* Returns x·Wᵀ + b without what adapters add. */
static struct smalti_value product(struct smalti_tape *tape, const struct smalti_linear *linear,
				   struct smalti_value x, enum smalti_dtype result)
{
	struct smalti_value y = smalti_value_new(tape, x.rows, linear->out, result);
	smalti_linear_into(tape->task_group, linear, x.rows, x.dtype, x.tile, SMALTI_EPILOGUE_NONE, result,
			   y.tile);
	record(tape, linear, x, false, y);
	return y;
}

struct smalti_value smalti_layer_linear(struct smalti_tape *tape, const struct smalti_linear *linear,
					struct smalti_value x, enum smalti_dtype result)
{
	if (!linear->trained)
		return product(tape, linear, x, result);
	struct smalti_value sum = product(tape, linear, x, SMALTI_F32);
	smalti_layer_low_rank(tape, linear->trained, x, sum);
	return result == SMALTI_F32 ? sum : smalti_layer_rounded(tape, &sum, result);
}

void smalti_layer_linear_onto(struct smalti_tape *tape, const struct smalti_linear *linear,
			      struct smalti_value x, struct smalti_value y)
{
	smalti_linear_add(tape->task_group, linear, x.rows, x.dtype, x.tile, y.tile);
	record(tape, linear, x, true, y);
	if (linear->trained)
		smalti_layer_low_rank(tape, linear->trained, x, y);
}
