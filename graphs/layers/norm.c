/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/layers/layers.h"

static void norm_again(struct smalti_tape *tape, const struct smalti_record *r, struct smalti_tile *y)
{
	smalti_insert(
	    ln_modulate, tape->task_group,
	    (.x = smalti_tape_tile(tape, r->x), .modulation = smalti_tape_tile(tape, r->modulation), .y = y),
	    .rows = r->y.rows, .dim = r->y.columns, .shift_row = r->row, .scale_row = r->row + 1,
	    .epsilon = (float)r->epsilon, .dtype = r->y.dtype);
}

static void norm_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	bool add = false;
	struct smalti_tile *gx = smalti_tape_into_any(tape, r->x, &add);
	smalti_insert(ln_modulate_backward, tape->task_group,
		      (.x = smalti_tape_tile(tape, r->x), .modulation = smalti_tape_tile(tape, r->modulation),
		       .gy = smalti_tape_gradient(tape, r->y), .gx = gx,
		       .gmodulation = smalti_tape_onto(tape, r->modulation)),
		      .rows = r->y.rows, .dim = r->y.columns, .shift_row = r->row, .scale_row = r->row + 1,
		      .epsilon = (float)r->epsilon, .add = add);
}

static const struct smalti_layer norm_layer = {norm_again, norm_backward};

struct smalti_value smalti_layer_norm(struct smalti_tape *tape, struct smalti_value x,
				      struct smalti_value modulation, int64_t row, double epsilon,
				      enum smalti_dtype result)
{
	struct smalti_record r = {.layer = &norm_layer,
				  .x = x,
				  .modulation = modulation,
				  .y = {NULL, x.rows, x.columns, result, 0},
				  .row = row,
				  .epsilon = epsilon};
	smalti_tape_reads(tape, x);
	smalti_tape_reads(tape, modulation);
	return smalti_tape_make(tape, &r);
}

static void modulation_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	bool add = false;
	const int64_t width = r->y.columns, count = r->y.rows * width;
	struct smalti_tile *gy = smalti_tape_gradient(tape, r->y);
	struct smalti_tile *gtable = smalti_tape_weight(tape, r->table, 0, &add);
	if (gtable)
		smalti_tape_add(tape, count, gy, add, gtable);
	struct smalti_tile *gembedding = smalti_tape_into(tape, r->x, &add);
	if (!gembedding)
		return;
	if (r->period == r->y.rows)
		smalti_tape_add(tape, count, gy, add, gembedding);
	else
		smalti_insert(column_sums, tape->task_group, (.x = gy, .y = gembedding), .rows = r->y.rows,
			      .dim = width, .add = add);
}

static const struct smalti_layer modulation_layer = {NULL, modulation_backward};

void smalti_layer_modulation(struct smalti_tape *tape, struct smalti_weight *table, int64_t rows,
			     struct smalti_value embedding, int64_t period, int64_t step,
			     struct smalti_value *y)
{
	if (!y->tile)
		*y = smalti_value_new(tape, rows, embedding.columns, SMALTI_F32);
	smalti_insert(modulation, tape->task_group,
		      (.table = smalti_weight_tile(table), .embedding = embedding.tile, .y = y->tile),
		      .rows = rows, .dim = embedding.columns, .period = period, .step = step);
	const struct smalti_record r = {
	    .layer = &modulation_layer, .x = embedding, .y = *y, .table = table, .period = period};
	smalti_tape_record(tape, &r);
}
