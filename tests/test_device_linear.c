/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear layers on a device, as models have them, against sums in f64: their bias, GELU, and results of every
 * dtype. tests/cuda.sh counts what those with results of 16 bits launch.
 */
#include "base/int8.h"
#include "codelets/codelets.h"
#include "device_session.h"
#include "graphs/weight_forms.h"
#include "kernels/matmul_w8a8.h"
#include "rt/task.h"
#include "rt/tile_forms.h"

#include <math.h>
#include <stdlib.h>

#include <starpu.h>

/* Of six columns at least: each of three parts has two, which a product by cuBLASLt needs for a bias. */
static const struct shape {
	int64_t rows, in, out;
} shapes[] = {{1, 13, 17}, {31, 67, 129}, {7, 256, 8}, {5, 2, 6}, {3, 130, 66}, {9, 40, 48}};

enum { MAX_ROWS = 31, MAX_IN = 256, MAX_OUT = 129, PARTS = 3 };

struct layer {
	struct shape shape;
	enum smalti_dtype compute, result;
	enum smalti_epilogue epilogue;
	bool parts; /* its weight is in three, as a file has them */
	bool plain; /* its bias is f32 alone, as in training */
	float x[MAX_ROWS * MAX_IN], w[MAX_OUT * MAX_IN], bias[MAX_OUT], gates[2 * MAX_OUT];
	float y[MAX_ROWS * MAX_OUT]; /* before the layer */
	struct smalti_weight_source sources[2];
};

static void fill(float *to, int64_t count, enum smalti_dtype dtype, uint64_t *state)
{
	for (int64_t i = 0; i < count; i++)
		to[i] = smalti_round(dtype, test_random(state));
}

static void fill_layer(struct layer *l, uint64_t *state)
{
	const struct shape *s = &l->shape;
	fill(l->x, s->rows * s->in, l->compute, state);
	fill(l->w, s->out * s->in, l->compute, state);
	fill(l->bias, s->out, SMALTI_F32, state);
	fill(l->gates, 2 * s->out, SMALTI_F32, state);
	fill(l->y, s->rows * s->out, l->result, state);
}

static double expected(const struct layer *l, int64_t row, int64_t column)
{
	const struct shape *s = &l->shape;
	double sum = (double)l->bias[column], before = (double)l->y[row * s->out + column];
	for (int64_t i = 0; i < s->in; i++)
		sum += (double)l->x[row * s->in + i] * (double)l->w[column * s->in + i];
	if (l->epilogue == SMALTI_EPILOGUE_GELU)
		return 0.5 * sum * (1 + tanh(0.7978845608 * (sum + 0.044715 * sum * sum * sum)));
	if (l->epilogue == SMALTI_EPILOGUE_GATE_ADD)
		return before + (double)l->gates[s->out + column] * sum;
	return l->epilogue == SMALTI_EPILOGUE_ADD ? before + sum : sum;
}

static struct smalti_tile *upload(struct smalti_task_group *task_group, enum smalti_dtype dtype,
				  const float *values, int64_t count)
{
	const int64_t bytes = count * smalti_dtype_bytes(dtype);
	void *narrow = malloc((size_t)bytes);
	smalti_narrow(dtype, values, count, narrow);
	struct smalti_tile *tile = smalti_tile_upload(task_group, 1, bytes, narrow);
	free(narrow);
	return tile;
}

/* Returns a tile in the forms of a model's weights. */
static struct smalti_tile *formed(struct smalti_task_group *task_group, struct smalti_weight_source *source,
				  const float *values, int64_t count)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tile_forms forms;
	source->parts = 1;
	source->part[0] = (struct smalti_tensor_view){.data = values,
						      .dtype = SMALTI_F32,
						      .rank = 1,
						      .shape = {count},
						      .bytes = count * (int64_t)sizeof(*values)};
	SUCCEEDS(smalti_weight_forms(source, &forms, &error), &error, "forms");
	return smalti_tile_of_forms(task_group, &forms);
}

static void insert_parts(struct smalti_task_group *task_group, const struct layer *l,
			 const struct matmul_arguments *arguments, struct matmul_raw_buffers *buffers)
{
	struct matmul_raw_arguments raw = {.matmul = *arguments};
	struct smalti_tile **const parts[PARTS] = {&buffers->part0, &buffers->part1, &buffers->part2};
	for (int64_t i = 0, first = 0; i < PARTS; first += raw.part_out[i++]) {
		raw.dtype[i] = l->compute;
		raw.part_out[i] = i + 1 < PARTS ? l->shape.out / PARTS : l->shape.out - first;
		*parts[i] =
		    upload(task_group, l->compute, l->w + first * l->shape.in, raw.part_out[i] * l->shape.in);
	}
	smalti_insert_matmul_raw(task_group, buffers, &raw);
	for (int i = 0; i < PARTS; i++)
		smalti_tile_release(*parts[i]);
}

static void insert_whole(struct smalti_task_group *task_group, struct layer *l,
			 const struct matmul_arguments *arguments, const struct matmul_raw_buffers *of)
{
	const struct matmul_buffers buffers = {
	    .x = of->x,
	    .weight = formed(task_group, &l->sources[0], l->w, l->shape.in * l->shape.out),
	    .bias = of->bias,
	    .gate = of->gate,
	    .y = of->y};
	smalti_insert_matmul(task_group, &buffers, arguments);
	smalti_tile_release(buffers.weight);
}

/* Returns how far y may be off: what is added with a gate may have been rounded to bf16. */
static double tolerance_of(const struct layer *l)
{
	const bool rounded = l->epilogue == SMALTI_EPILOGUE_GATE_ADD && l->compute == SMALTI_BF16;
	if (l->result == SMALTI_BF16 || rounded)
		return 1e-2;
	return l->result == SMALTI_F16 ? 1.5e-3 : 2e-5;
}

static void check(const struct layer *l, struct smalti_tile *y)
{
	const struct shape *s = &l->shape;
	const double tolerance = tolerance_of(l);
	double worst = 0;
	char what[160];
	starpu_data_handle_t handle = smalti_tile_handle(y);
	CHECK(starpu_data_acquire(handle, STARPU_R) == 0, "acquired");
	float values[MAX_ROWS * MAX_OUT];
	smalti_widen(l->result, starpu_data_get_local_ptr(handle), s->rows * s->out, values);
	for (int64_t i = 0; i < s->rows * s->out; i++) {
		const double is = expected(l, i / s->out, i % s->out);
		const double off = fabs((double)values[i] - is) / (1 + fabs(is));
		worst = off <= worst ? worst : off;
	}
	starpu_data_release(handle);
	snprintf(what, sizeof(what), "%lldx%lldx%lld, %s to %s, epilogue %d, %s: off by %g",
		 (long long)s->rows, (long long)s->in, (long long)s->out, smalti_dtype_name(l->compute),
		 smalti_dtype_name(l->result), (int)l->epilogue, l->parts ? "parts" : "whole", worst);
	CHECK(worst <= tolerance, what);
}

static void run(struct smalti_session *session, struct layer *l, uint64_t *state)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "layer", 0, &error);
	const struct shape *s = &l->shape;
	const struct matmul_arguments arguments = {.rows = s->rows,
						   .in = s->in,
						   .out = s->out,
						   .x_dtype = l->compute,
						   .compute = l->compute,
						   .result = l->result,
						   .epilogue = l->epilogue,
						   .gate_row = 1};
	const bool gated = l->epilogue == SMALTI_EPILOGUE_GATE_ADD;
	fill_layer(l, state);
	l->sources[0] = (struct smalti_weight_source){
	    .kind = SMALTI_WEIGHT_MATRIX, .compute = l->compute, .in = s->in, .out = s->out};
	l->sources[1] = (struct smalti_weight_source){.kind = SMALTI_WEIGHT_VECTOR, .compute = l->compute};
	struct matmul_raw_buffers buffers = {
	    .x = upload(task_group, l->compute, l->x, s->rows * s->in),
	    .bias = l->plain ? upload(task_group, SMALTI_F32, l->bias, s->out)
			     : formed(task_group, &l->sources[1], l->bias, s->out),
	    .gate = gated ? upload(task_group, SMALTI_F32, l->gates, 2 * s->out) : NULL,
	    .y = upload(task_group, l->result, l->y, s->rows * s->out)};
	if (l->parts)
		insert_parts(task_group, l, &arguments, &buffers);
	else
		insert_whole(task_group, l, &arguments, &buffers);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "layer");
	check(l, buffers.y);
	smalti_tile_release(buffers.x);
	smalti_tile_release(buffers.bias);
	smalti_tile_release(buffers.gate);
	smalti_tile_release(buffers.y);
	smalti_task_group_free(task_group);
	starpu_task_wait_for_all();
}

/* Runs layers of every shape, whole and in parts, with these epilogues, of operands and results in these
 * dtypes. */
static void run_all(const enum smalti_dtype (*dtypes)[2], int pairs, const enum smalti_epilogue *epilogues,
		    int count, bool plain)
{
	static struct layer layer;
	uint64_t state = 3;
	int products = 0;
	struct smalti_session *session = test_open_devices("linear layers", "0", 1, NULL, NULL);
	if (!session)
		return;
	for (int i = 0; i < 2 * pairs * count * COUNT(shapes); i++) {
		const int pair = i / 2 % pairs;
		layer.parts = i % 2;
		layer.plain = plain;
		layer.compute = dtypes[pair][0];
		layer.result = dtypes[pair][1];
		layer.epilogue = epilogues[i / 2 / pairs % count];
		layer.shape = shapes[i / 2 / pairs / count];
		run(session, &layer, &state);
		products += layer.parts ? PARTS : 1;
	}
	printf("\n    %d products\n", products);
	test_close_devices(session);
}

static const enum smalti_dtype narrow[][2] = {{SMALTI_BF16, SMALTI_BF16}, {SMALTI_F16, SMALTI_F16}};
static const enum smalti_epilogue written[] = {SMALTI_EPILOGUE_NONE, SMALTI_EPILOGUE_GELU};

static void sixteen_bits(void)
{
	run_all(narrow, COUNT(narrow), written, COUNT(written), false);
}

static void parameters(void)
{
	run_all(narrow, COUNT(narrow), written, COUNT(written), true);
}

static void f32(void)
{
	static const enum smalti_dtype dtypes[][2] = {
	    {SMALTI_F32, SMALTI_F32}, {SMALTI_BF16, SMALTI_F32}, {SMALTI_F16, SMALTI_F32}};
	static const enum smalti_epilogue epilogues[] = {SMALTI_EPILOGUE_NONE, SMALTI_EPILOGUE_GELU,
							 SMALTI_EPILOGUE_ADD, SMALTI_EPILOGUE_GATE_ADD};
	run_all(dtypes, COUNT(dtypes), epilogues, COUNT(epilogues), false);
}

/* Makes rows of int8 with scales (base/rows8.h). */
static void make_rows(const struct shape *s, char *rows, uint64_t *state)
{
	const int64_t stride = smalti_rows8_stride(s->in);
	memset(rows, 0, (size_t)(s->out * stride));
	for (int64_t o = 0; o < s->out; o++) {
		float *values = malloc((size_t)s->in * sizeof(*values));
		fill(values, s->in, SMALTI_F32, state);
		const float scale = smalti_int8_scale(values, s->in);
		smalti_int8_round(values, s->in, scale, (int8_t *)rows + o * stride);
		memcpy(rows + o * stride + smalti_rows8_scale_at(s->in), &scale, sizeof(scale));
		free(values);
	}
}

static void run_integers(struct smalti_session *session, const struct shape *s, uint64_t *state)
{
	static float x[MAX_ROWS * MAX_IN], expected[MAX_ROWS * MAX_OUT];
	static char rows[MAX_OUT * (MAX_IN + SMALTI_ROWS8_PAD)];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "integers", 0, &error);
	const struct smalti_matmul product = {.rows = s->rows, .in = s->in, .out = s->out};
	const struct matmul_raw_arguments arguments = {
	    .matmul = {.rows = s->rows, .in = s->in, .out = s->out},
	    .part_out = {s->out},
	    .dtype = {SMALTI_I8},
	    .rounds_x = true};
	const int64_t bytes = s->out * smalti_rows8_stride(s->in);
	fill(x, s->rows * s->in, SMALTI_F32, state);
	make_rows(s, rows, state);
	SUCCEEDS(smalti_matmul_w8a8(&product, SMALTI_F32, x, rows, NULL, NULL, expected, &error), &error,
		 "CPU");
	struct matmul_raw_buffers buffers = {.x = upload(task_group, SMALTI_F32, x, s->rows * s->in),
					     .part0 = smalti_tile_upload(task_group, 1, bytes, rows),
					     .y = upload(task_group, SMALTI_F32, x, s->rows * s->out)};
	smalti_insert_matmul_raw(task_group, &buffers, &arguments);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "integers");
	starpu_data_handle_t handle = smalti_tile_handle(buffers.y);
	CHECK(starpu_data_acquire(handle, STARPU_R) == 0, "acquired");
	CHECK(memcmp(starpu_data_get_local_ptr(handle), expected, (size_t)(s->rows * s->out) * 4) == 0,
	      "bits");
	starpu_data_release(handle);
	smalti_tile_release(buffers.x);
	smalti_tile_release(buffers.part0);
	smalti_tile_release(buffers.y);
	smalti_task_group_free(task_group);
	starpu_task_wait_for_all();
}

/* Products of integers have a CPU's bits. Those whose sizes are multiples of four are the device's own, where
 * it has such. */
static void integers(void)
{
	static const struct shape own[] = {{1, 16, 4},    {31, 68, 128}, {7, 256, 8},
					   {30, 44, 100}, {1, 13, 17},   {5, 2, 6}};
	uint64_t state = 5;
	int products = 0;
	struct smalti_session *session = test_open_devices("products of integers", "0", 1, NULL, NULL);
	if (!session)
		return;
	for (int i = 0; i < COUNT(own); i++) {
		run_integers(session, &own[i], &state);
		products += own[i].in % 4 == 0 && own[i].out % 4 == 0;
	}
	printf("\n    %d products\n", products);
	test_close_devices(session);
}

static const struct test tests[] = {
    {"products of integers", integers},
    {"results of 16 bits", sixteen_bits},
    {"biases in f32 alone", parameters},
    {"results in f32", f32},
};

TEST_MAIN("linear layers on devices", tests)
