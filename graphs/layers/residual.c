/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/layers/layers.h"
#include "graphs/linear.h"

static void gated_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	bool add;
	smalti_insert(gate_backward, tape->task_group,
		      (.gy = smalti_tape_gradient(tape, r->y), .z = smalti_tape_tile(tape, r->added),
		       .modulation = smalti_tape_tile(tape, r->modulation),
		       .gz = smalti_tape_into_any(tape, r->added, &add),
		       .gmodulation = smalti_tape_onto(tape, r->modulation)),
		      .rows = r->y.rows, .dim = r->y.columns, .gate_row = r->row);
	smalti_tape_hand_over(tape, r->y, r->x);
}

/* Without a gate both gradients are that of the sum. */
static void sum_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	smalti_tape_lend(tape, r->y, r->added);
	smalti_tape_hand_over(tape, r->y, r->x);
}

static const struct smalti_layer gated_layer = {NULL, gated_backward}, sum_layer = {NULL, sum_backward};

static void add_in_place(struct smalti_tape *tape, const struct smalti_linear *linear, struct smalti_value o,
			 struct smalti_gate gate, struct smalti_tile *x)
{
	if (gate.modulation.tile)
		smalti_linear_gate_add(tape->task_group, linear, o.rows, o.dtype, o.tile,
				       gate.modulation.tile, gate.row, x);
	else
		smalti_linear_add(tape->task_group, linear, o.rows, o.dtype, o.tile, x);
}

void smalti_layer_add(struct smalti_tape *tape, const struct smalti_linear *linear, struct smalti_value o,
		      struct smalti_gate gate, struct smalti_value *x, struct smalti_value *sum)
{
	if (!tape->records)
		add_in_place(tape, linear, o, gate, x->tile);
	else if (!sum->tile)
		*sum = smalti_layer_linear(tape, linear, o, SMALTI_F32);
	else
		smalti_layer_linear_onto(tape, linear, o, *sum);
}

void smalti_layer_added(struct smalti_tape *tape, struct smalti_gate gate, bool last, struct smalti_value *x,
			struct smalti_value *sum)
{
	if (!tape->records)
		return;
	const bool gated = gate.modulation.tile != NULL;
	struct smalti_record r = {.layer = gated ? &gated_layer : &sum_layer,
				  .x = *x,
				  .added = *sum,
				  .modulation = gate.modulation,
				  .row = gate.row};
	if (gated) {
		smalti_tape_reads(tape, *sum);
		smalti_tape_reads(tape, gate.modulation);
	}
	r.y = last ? smalti_value_declare(tape, x->rows, x->columns, SMALTI_F32)
		   : smalti_value_new(tape, x->rows, x->columns, SMALTI_F32);
	if (!last)
		smalti_insert(
		    gated_sum, tape->task_group,
		    (.x = x->tile, .z = sum->tile, .modulation = gate.modulation.tile, .y = r.y.tile),
		    .rows = x->rows, .dim = x->columns, .gate_row = gate.row);
	smalti_tape_record(tape, &r);
	smalti_value_release(tape, sum);
	smalti_value_release(tape, x);
	*x = r.y;
}
