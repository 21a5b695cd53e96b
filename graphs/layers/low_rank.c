/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/layers/low_rank.h"
#include "codelets/codelets.h"

static void scale(struct smalti_tape *tape, const struct smalti_record *r, struct smalti_tile *x,
		  struct smalti_tile *y)
{
	smalti_insert(scale, tape->task_group, (.x = x, .y = y), .count = r->y.rows * r->y.columns,
		      .factor = (float)r->epsilon);
}

static void scaled_again(struct smalti_tape *tape, const struct smalti_record *r, struct smalti_tile *y)
{
	scale(tape, r, smalti_tape_tile(tape, r->x), y);
}

/* x has no other reader. */
static void scaled_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	bool add;
	struct smalti_tile *gx = smalti_tape_into(tape, r->x, &add);
	scale(tape, r, smalti_tape_gradient(tape, r->y), gx);
}

static const struct smalti_layer scaled_layer = {scaled_again, scaled_backward};

static struct smalti_value scaled(struct smalti_tape *tape, struct smalti_value x, double factor)
{
	struct smalti_record r = {
	    .layer = &scaled_layer, .x = x, .y = {NULL, x.rows, x.columns, SMALTI_F32, 0}, .epsilon = factor};
	smalti_tape_reads(tape, x);
	return smalti_tape_make(tape, &r);
}

/* The gradient of what was added is that of its columns. */
static void columns_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	bool add;
	const int64_t size = sizeof(float);
	smalti_insert(slice_columns, tape->task_group,
		      (.x = smalti_tape_gradient(tape, r->y), .y = smalti_tape_into(tape, r->x, &add)),
		      .rows = r->x.rows, .parts = 1, .in = r->y.columns * size, .first = r->row * size,
		      .columns = r->x.columns * size);
}

static const struct smalti_layer columns_layer = {NULL, columns_backward};

static void add_columns(struct smalti_tape *tape, struct smalti_value x, int64_t first, struct smalti_value y)
{
	const struct smalti_record r = {.layer = &columns_layer, .x = x, .y = y, .adds = true, .row = first};
	smalti_insert(add_columns, tape->task_group, (.x = x.tile, .y = y.tile), .rows = x.rows,
		      .columns = x.columns, .stride = y.columns, .first = first);
	smalti_tape_record(tape, &r);
}

void smalti_layer_low_rank(struct smalti_tape *tape, const struct smalti_low_rank_pair *pairs,
			   struct smalti_value x, struct smalti_value y)
{
	for (const struct smalti_low_rank_pair *pair = pairs; pair; pair = pair->next) {
		struct smalti_value down = smalti_layer_linear(tape, &pair->down, x, SMALTI_F32);
		struct smalti_value u = scaled(tape, down, pair->scale);
		smalti_value_release(tape, &down);
		if (pair->up.out == y.columns) {
			smalti_layer_linear_onto(tape, &pair->up, u, y);
		} else {
			struct smalti_value z = smalti_layer_linear(tape, &pair->up, u, SMALTI_F32);
			add_columns(tape, z, pair->first, y);
			smalti_value_release(tape, &z);
		}
		smalti_value_release(tape, &u);
	}
}

static void rounded_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	smalti_tape_hand_over(tape, r->y, r->x);
}

/* It is kept: what is smaller is not made of what is larger. */
static const struct smalti_layer rounded_layer = {NULL, rounded_backward};

struct smalti_value smalti_layer_rounded(struct smalti_tape *tape, struct smalti_value *x,
					 enum smalti_dtype dtype)
{
	const struct smalti_value y = smalti_value_new(tape, x->rows, x->columns, dtype);
	const struct smalti_record r = {.layer = &rounded_layer, .x = *x, .y = y};
	smalti_insert(convert, tape->task_group, (.x = x->tile, .y = y.tile), .count = x->rows * x->columns,
		      .from = SMALTI_F32, .to = dtype);
	smalti_tape_record(tape, &r);
	smalti_value_release(tape, x);
	return y;
}
