/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/linear.h"

static struct matmul_arguments arguments_of(const struct smalti_linear *linear, int64_t rows,
					    enum smalti_dtype x_dtype, enum smalti_epilogue epilogue,
					    enum smalti_dtype result)
{
	return (struct matmul_arguments){.rows = rows,
					 .in = linear->in,
					 .out = linear->out,
					 .x_dtype = x_dtype,
					 .compute = linear->compute,
					 .result = result,
					 .epilogue = epilogue};
}

enum { DENSE_ROWS = 64 }; /* with fewer rows the library is slower than a product that streams the weights */

static struct matmul_raw_arguments raw_arguments_of(const struct smalti_linear *linear,
						    const struct matmul_arguments *arguments)
{
	struct matmul_raw_arguments raw = {.matmul = *arguments,
					   .dense = smalti_weight_is_trained(linear->weight) &&
						    arguments->rows >= DENSE_ROWS};
	for (int i = 0; i < 3; i++) {
		const struct smalti_tensor_view *part = smalti_weight_view(linear->weight, i);
		raw.dtype[i] = part->dtype;
		raw.part_out[i] = part->shape[0];
	}
	return raw;
}

static void insert(struct smalti_task_group *task_group, const struct smalti_linear *linear,
		   const struct matmul_arguments *arguments, struct smalti_tile *x, struct smalti_tile *gates,
		   struct smalti_tile *y)
{
	struct smalti_weight *weight = linear->weight;
	struct smalti_tile *bias = smalti_weight_tile(linear->bias);
	if (smalti_weight_is_rows8(weight)) {
		const struct matmul_raw_arguments rows = {.matmul = *arguments,
							  .dtype = {smalti_weight_rows8(weight)},
							  .part_out = {linear->out},
							  .rounds_x = linear->w8a8};
		const struct matmul_raw_buffers buffers = {
		    .x = x, .part0 = smalti_weight_tile(weight), .bias = bias, .gate = gates, .y = y};
		smalti_insert_matmul_raw(task_group, &buffers, &rows);
		return;
	}
	if (smalti_weight_is_raw(weight)) {
		const struct matmul_raw_arguments raw = raw_arguments_of(linear, arguments);
		const struct matmul_raw_buffers buffers = {.x = x,
							   .part0 = smalti_weight_part(weight, 0),
							   .part1 = smalti_weight_part(weight, 1),
							   .part2 = smalti_weight_part(weight, 2),
							   .bias = bias,
							   .gate = gates,
							   .y = y};
		smalti_insert_matmul_raw(task_group, &buffers, &raw);
		return;
	}
	const struct matmul_buffers buffers = {
	    .x = x, .weight = smalti_weight_tile(weight), .bias = bias, .gate = gates, .y = y};
	smalti_insert_matmul(task_group, &buffers, arguments);
}

/* Makes y of the sum t, both [rows, out]. */
static void finish(struct smalti_task_group *task_group, const struct matmul_arguments *arguments,
		   struct smalti_tile *t, struct smalti_tile *y)
{
	const int64_t count = arguments->rows * arguments->out;
	if (arguments->epilogue == SMALTI_EPILOGUE_GELU)
		smalti_insert(gelu, task_group, (.x = t, .y = y), .count = count, .dtype = arguments->result);
	else if (arguments->epilogue == SMALTI_EPILOGUE_SILU)
		smalti_insert(silu, task_group, (.x = t, .y = y), .count = count);
	else
		smalti_insert(convert, task_group, (.x = t, .y = y), .count = count, .from = SMALTI_F32,
			      .to = arguments->result);
}

/* Inserts the product and what adapters add to it, before the epilogue. */
static void insert_adapted(struct smalti_task_group *task_group, const struct smalti_linear *linear,
			   const struct matmul_arguments *arguments, struct smalti_tile *x,
			   struct smalti_tile *gates, struct smalti_tile *y)
{
	const struct smalti_low_rank_pair *pair = linear->low_rank;
	const int64_t rows = arguments->rows, row = (int64_t)sizeof(float);
	const bool gated = arguments->epilogue == SMALTI_EPILOGUE_GATE_ADD;
	const bool adds = gated || arguments->epilogue == SMALTI_EPILOGUE_ADD;
	const bool sum =
	    adds || (arguments->epilogue == SMALTI_EPILOGUE_NONE && arguments->result == SMALTI_F32);
	struct matmul_arguments base = *arguments;
	struct smalti_tile *u = smalti_tile_new(task_group, rows, pair->down.out * row);
	struct smalti_tile *t = sum ? y : smalti_tile_new(task_group, rows, linear->out * row);
	const struct matmul_arguments down =
	    arguments_of(&pair->down, rows, arguments->x_dtype, SMALTI_EPILOGUE_NONE, SMALTI_F32);
	struct matmul_arguments up = arguments_of(
	    &pair->up, rows, SMALTI_F32, gated ? SMALTI_EPILOGUE_GATE_ADD : SMALTI_EPILOGUE_ADD, SMALTI_F32);
	up.gate_row = arguments->gate_row;
	if (!sum) {
		base.epilogue = SMALTI_EPILOGUE_NONE;
		base.result = SMALTI_F32;
	}
	insert(task_group, &pair->down, &down, x, NULL, u);
	insert(task_group, linear, &base, x, gates, t);
	insert(task_group, &pair->up, &up, u, gates, t);
	if (!sum) {
		finish(task_group, arguments, t, y);
		smalti_tile_release(t);
	}
	smalti_tile_release(u);
}

static void insert_layer(struct smalti_task_group *task_group, const struct smalti_linear *linear,
			 const struct matmul_arguments *arguments, struct smalti_tile *x,
			 struct smalti_tile *gates, struct smalti_tile *y)
{
	(linear->low_rank ? insert_adapted : insert)(task_group, linear, arguments, x, gates, y);
}

void smalti_linear_into(struct smalti_task_group *task_group, const struct smalti_linear *linear,
			int64_t rows, enum smalti_dtype x_dtype, struct smalti_tile *x,
			enum smalti_epilogue epilogue, enum smalti_dtype result, struct smalti_tile *y)
{
	const struct matmul_arguments arguments = arguments_of(linear, rows, x_dtype, epilogue, result);
	insert_layer(task_group, linear, &arguments, x, NULL, y);
}

void smalti_linear_add(struct smalti_task_group *task_group, const struct smalti_linear *linear, int64_t rows,
		       enum smalti_dtype x_dtype, struct smalti_tile *x, struct smalti_tile *y)
{
	const struct matmul_arguments arguments =
	    arguments_of(linear, rows, x_dtype, SMALTI_EPILOGUE_ADD, SMALTI_F32);
	insert_layer(task_group, linear, &arguments, x, NULL, y);
}

void smalti_linear_gate_add(struct smalti_task_group *task_group, const struct smalti_linear *linear,
			    int64_t rows, enum smalti_dtype x_dtype, struct smalti_tile *x,
			    struct smalti_tile *gates, int64_t gate_row, struct smalti_tile *y)
{
	struct matmul_arguments arguments =
	    arguments_of(linear, rows, x_dtype, SMALTI_EPILOGUE_GATE_ADD, SMALTI_F32);
	arguments.gate_row = gate_row;
	insert_layer(task_group, linear, &arguments, x, gates, y);
}
