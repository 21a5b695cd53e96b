/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/layers/layers.h"
#include "graphs/linear.h"

static void gelu_again(struct smalti_tape *tape, const struct smalti_record *r, struct smalti_tile *y)
{
	smalti_insert(gelu, tape->task_group, (.x = smalti_tape_tile(tape, r->x), .y = y),
		      .count = r->y.rows * r->y.columns, .dtype = r->y.dtype);
}

static void gelu_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	smalti_insert(gelu_backward, tape->task_group,
		      (.x = smalti_tape_tile(tape, r->x), .g = smalti_tape_gradient(tape, r->y)),
		      .count = r->y.rows * r->y.columns);
	smalti_tape_hand_over(tape, r->y, r->x);
}

static void silu_again(struct smalti_tape *tape, const struct smalti_record *r, struct smalti_tile *y)
{
	smalti_insert(silu, tape->task_group, (.x = smalti_tape_tile(tape, r->x), .y = y),
		      .count = r->y.rows * r->y.columns);
}

static void silu_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	smalti_insert(silu_backward, tape->task_group,
		      (.x = smalti_tape_tile(tape, r->x), .g = smalti_tape_gradient(tape, r->y)),
		      .count = r->y.rows * r->y.columns);
	smalti_tape_hand_over(tape, r->y, r->x);
}

static const struct smalti_layer gelu_layer = {gelu_again, gelu_backward},
				 silu_layer = {silu_again, silu_backward};

static struct smalti_value activate(struct smalti_tape *tape, const struct smalti_layer *layer,
				    struct smalti_value x, enum smalti_dtype result)
{
	struct smalti_record r = {.layer = layer, .x = x, .y = {NULL, x.rows, x.columns, result, 0}};
	smalti_tape_reads(tape, x);
	return smalti_tape_make(tape, &r);
}

struct smalti_value smalti_layer_silu(struct smalti_tape *tape, struct smalti_value x)
{
	return activate(tape, &silu_layer, x, SMALTI_F32);
}

/* Without a record the product makes the activation, too. */
struct smalti_value smalti_layer_activated(struct smalti_tape *tape, const struct smalti_linear *linear,
					   struct smalti_value x, enum smalti_epilogue f,
					   enum smalti_dtype result)
{
	if (!tape->records) {
		struct smalti_value y = smalti_value_new(tape, x.rows, linear->out, result);
		smalti_linear_into(tape->task_group, linear, x.rows, x.dtype, x.tile, f, result, y.tile);
		return y;
	}
	struct smalti_value hidden = smalti_layer_linear(tape, linear, x, SMALTI_F32);
	const struct smalti_value y =
	    activate(tape, f == SMALTI_EPILOGUE_GELU ? &gelu_layer : &silu_layer, hidden, result);
	smalti_value_release(tape, &hidden);
	return y;
}
