/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic and the bytes that a row of codelets.def says its tasks need, against loops that compute as
 * a reader of the operation's definition would, counting every operation and marking every byte they touch.
 * Biases and other small vectors that arguments do not tell of are left out, as the formulas do.
 */
#include "bench/cases.h"
#include "harness.h"
#include "rt/op.h"

#include <stdlib.h>
#include <string.h>

enum { ARRAYS = 2 + SMALTI_MANY, LARGEST = 1 << 16 };
enum { READ = 1, WRITTEN = 2 };

/* What the loops of one task touched: a mark for each byte of each array, named by a number. */
static unsigned char marks[ARRAYS][LARGEST];
static double operations;

static void mark(int array, enum smalti_dtype dtype, int64_t index, int how)
{
	const int64_t bytes = smalti_dtype_bytes(dtype), first = index * bytes;
	CHECK(array < ARRAYS && index >= 0 && first + bytes <= LARGEST, "inside the marks");
	for (int64_t i = first; i < first + bytes; i++)
		marks[array][i] |= (unsigned char)how;
}

static void mark_all(int array, enum smalti_dtype dtype, int64_t count, int how)
{
	for (int64_t i = 0; i < count; i++)
		mark(array, dtype, i, how);
}

static void mark_bytes(int array, int64_t bytes, int how)
{
	memset(marks[array], how, (size_t)bytes);
}

static double marked(void)
{
	double sum = 0;
	for (int array = 0; array < ARRAYS; array++)
		for (int i = 0; i < LARGEST; i++)
			sum += (marks[array][i] & READ ? 1 : 0) + (marks[array][i] & WRITTEN ? 1 : 0);
	return sum;
}

/* Element by element: `each` operations on arrays of one extent. */
static void elements(int64_t count, double each, enum smalti_dtype from, enum smalti_dtype to)
{
	mark_all(0, from, count, READ);
	mark_all(1, to, count, WRITTEN);
	operations += each * (double)count;
}

#define WORK_OF(op) static void count_##op(const struct op##_arguments *a)

/* x [rows, in] in array 0, a weight [out, in] in `array`, y [rows, columns] from column `first` in array 1.
 */
static void product(const struct matmul_arguments *a, int64_t out, int64_t first, int array,
		    enum smalti_dtype weight)
{
	for (int64_t r = 0; r < a->rows; r++)
		for (int64_t o = 0; o < out; o++) {
			for (int64_t i = 0; i < a->in; i++) {
				mark(0, a->x_dtype, r * a->in + i, READ);
				mark(array, weight, o * a->in + i, READ);
				operations += 2;
			}
			const bool adds =
			    a->epilogue == SMALTI_EPILOGUE_ADD || a->epilogue == SMALTI_EPILOGUE_GATE_ADD;
			mark(1, a->result, r * a->out + first + o, adds ? READ | WRITTEN : WRITTEN);
		}
}

WORK_OF(matmul)
{
	product(a, a->out, 0, 2, a->compute);
}

WORK_OF(matmul_raw)
{
	int64_t first = 0;
	for (int part = 0; part < 3; first += a->part_out[part++])
		product(&a->matmul, a->part_out[part], first, 2 + part, a->dtype[part]);
}

/* Keys and values of block b in array 2 + b; the state, as large as the kernel's, in array 1 behind y. */
WORK_OF(attention)
{
	const int64_t width = a->heads * a->head_dim;
	const int64_t state = a->queries * a->heads * (a->head_dim + 2), behind = a->queries * width;
	for (int64_t q = 0; q < a->queries; q++)
		for (int block = 0; block < SMALTI_MANY; block++)
			for (int64_t k = 0; k < a->keys[block]; k++)
				for (int64_t d = 0; d < width; d++) {
					mark(0, a->dtype, q * width + d, READ);
					mark(2 + block, a->dtype, k * 2 * width + d, READ);
					mark(2 + block, a->dtype, k * 2 * width + width + d, READ);
					operations += 4;
				}
	for (int64_t i = 0; i < state; i++)
		mark(1, SMALTI_F32, behind + i, (a->first ? 0 : READ) | (a->last ? 0 : WRITTEN));
	if (a->last)
		mark_all(1, a->dtype, behind, WRITTEN);
}

/* The scores again, the gradients of the weights, and of q, k and v. */
WORK_OF(attention_backward)
{
	const int64_t width = a->heads * a->head_dim;
	for (int64_t pair = 0; pair < a->queries * a->keys; pair++)
		operations += 5 * 2 * (double)width;
	for (int array = 0; array < 3; array++)
		mark_all(array, a->dtype, (array < 2 ? a->queries : 2 * a->keys) * width, READ);
	mark_all(4, SMALTI_F32, a->queries * a->heads, READ);
	mark_all(5, SMALTI_F32, a->queries * width, READ);
	mark_all(6, SMALTI_F32, a->queries * width, a->add_queries ? READ | WRITTEN : WRITTEN);
	mark_all(7, SMALTI_F32, 2 * a->keys * width, a->add_keys ? READ | WRITTEN : WRITTEN);
}

/* gy in array 0: its part. */
static void part_of_gradient(int64_t rows, int64_t in, int64_t out, int64_t stride, int64_t first)
{
	for (int64_t i = 0; i < rows * out; i++) {
		mark(0, SMALTI_F32, i / out * stride + first + i % out, READ);
		operations += 2 * (double)in;
	}
}

/* What is multiplied in array 2, the result in array 1. */
WORK_OF(linear_input)
{
	part_of_gradient(a->rows, a->in, a->out, a->stride, a->first);
	mark_all(2, a->dtype, a->out * a->in, READ);
	mark_all(1, SMALTI_F32, a->rows * a->in, a->add ? READ | WRITTEN : WRITTEN);
}

WORK_OF(linear_weight)
{
	part_of_gradient(a->rows, a->in, a->out, a->stride, a->first);
	mark_all(2, a->dtype, a->rows * a->in, READ);
	mark_all(1, SMALTI_F32, a->out * a->in, a->add ? READ | WRITTEN : WRITTEN);
}

WORK_OF(embed_tokens)
{
	for (int64_t t = 0; t < a->tokens; t++) {
		mark(2, SMALTI_F32, t, READ);
		for (int64_t c = 0; c < a->columns; c++) {
			mark(0, a->dtype, t * a->dim + a->first + c, READ);
			mark(1, SMALTI_F32, t * a->columns + c, WRITTEN);
		}
	}
}

/* Sum of squares: 2, by the root: 1, by the weight: 1. */
WORK_OF(rmsnorm)
{
	elements(a->rows * a->dim, 2 + 1 + 1, SMALTI_F32, a->dtype);
	mark_all(2, SMALTI_F32, a->dim, READ);
}

WORK_OF(attend_heads)
{
	const int64_t columns = a->heads * a->head_dim;
	for (int64_t t = 0; t < a->tokens; t++)
		for (int64_t c = 0; c < columns; c++)
			for (int64_t i = 0; i < a->in; i++)
				for (int m = 0; m < 3; m++) {
					mark(0, a->compute, t * a->in + i, READ);
					mark(2 + m, a->dtype[m], c * a->in + i, READ);
					operations += 2;
				}
	for (int64_t pair = 0; pair < a->pairs; pair++)
		operations += 4 * (double)columns;
	mark_all(1, a->compute, a->tokens * columns, WRITTEN);
}

WORK_OF(geglu)
{
	const struct matmul_arguments both = {
	    .rows = a->rows, .in = a->in, .out = a->columns, .x_dtype = a->compute, .result = a->result};
	product(&both, a->columns, 0, 2, a->dtype[0]);
	product(&both, a->columns, 0, 3, a->dtype[1]);
}

WORK_OF(sum_shards)
{
	const struct matmul_arguments sum = {.rows = a->rows,
					     .in = a->in,
					     .out = a->columns,
					     .x_dtype = a->compute,
					     .epilogue = SMALTI_EPILOGUE_ADD};
	product(&sum, a->columns, 0, 2, a->dtype);
}

WORK_OF(modulation)
{
	elements(a->rows * a->dim, 1, SMALTI_F32, SMALTI_F32);
	for (int64_t r = 0; r < a->rows; r++)
		for (int64_t d = 0; d < a->dim; d++)
			mark(2, SMALTI_F32, (a->step * a->period + r % a->period) * a->dim + d, READ);
}

WORK_OF(patch_embed)
{
	const struct matmul_arguments same = {.rows = a->rows, .in = a->in, .out = a->out};
	product(&same, a->out, 0, 2, SMALTI_F32);
	mark_all(3, SMALTI_F32, a->out, READ);
}

WORK_OF(came)
{
	const int64_t count = a->shape.parts * a->shape.batch * a->shape.rows * a->shape.columns;
	mark_all(0, SMALTI_F32, count, READ);
	mark_all(1, SMALTI_F32, count, READ | WRITTEN);
	mark_all(2, SMALTI_F32, count, READ | WRITTEN);
	mark_all(3, SMALTI_F32, smalti_came_factors(&a->shape), READ | WRITTEN);
	operations += (a->shape.factored ? 25 : 15) * (double)count;
}

WORK_OF(sampler_step)
{
	const int64_t pixels = a->rows * a->patch * a->patch;
	const int history = a->step.history;
	/* guidance, a prediction of two terms, sums of four terms and the history, and of one and the history
	 */
	operations += (double)(pixels * a->channels) *
		      (3 + 3 + (7 + 2 * history) + (a->step.corrects ? 1 + 2 * history : 0));
	for (int64_t p = 0; p < pixels; p++)
		for (int64_t c = 0; c < a->channels; c++) {
			mark(0, SMALTI_F32, p * a->out_channels + c, READ);
			for (int array = 0; array <= a->step.history; array++)
				mark(1 + array, SMALTI_F32, p * a->channels + c, READ | WRITTEN);
		}
}

/* Of the map that is convolved, `row` and `column` may lie one beside it: a zero, which is multiplied, too.
 */
static void tap(const struct conv_arguments *a, int64_t row, int64_t column, int64_t in)
{
	const int64_t scale = a->upsample ? 2 : 1;
	operations += 2;
	if (row >= 0 && row < scale * a->rows && column >= 0 && column < scale * a->width)
		mark(0, SMALTI_F32, (row / scale * a->width + column / scale) * a->in + in, READ);
}

WORK_OF(conv)
{
	const int64_t scale = a->upsample ? 2 : 1, step = a->stride, back = step == 1 ? 1 : 0;
	const int64_t rows = scale * a->rows / step, width = scale * a->width / step;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < width; c++)
			for (int64_t o = 0; o < a->out; o++) {
				for (int64_t i = 0; i < a->in; i++)
					for (int t = 0; t < 9; t++) {
						tap(a, step * r + t / 3 - back, step * c + t % 3 - back, i);
						mark(2, a->compute, (o * a->in + i) * 9 + t, READ);
					}
				mark(1, SMALTI_F32, (r * width + c) * a->out + o,
				     a->residual ? READ | WRITTEN : WRITTEN);
			}
}

WORK_OF(edges)
{
	const int64_t row = a->width * a->channels;
	for (int64_t r = 0; r < a->rows; r++)
		for (int64_t i = 0; (a->groups || r == 0 || r == a->rows - 1) && i < row; i++)
			mark(0, SMALTI_F32, r * row + i, READ);
}

WORK_OF(merge_moments)
{
	mark_bytes(0, a->groups * 24, READ);
	mark_bytes(1, a->groups * 24, WRITTEN);
}

#define COUNTS(op, ...)                                                                                      \
	WORK_OF(op)                                                                                          \
	{                                                                                                    \
		(void)a;                                                                                     \
		__VA_ARGS__                                                                                  \
	}
#include "counts.def"

#define CODELET(name, work, list, members, flops, bytes)                                                     \
	static void any_##name(const void *arguments)                                                        \
	{                                                                                                    \
		count_##name(arguments);                                                                     \
	}
#include "codelets/codelets.def"

static void (*const counts[])(const void *arguments) = {
#define CODELET(name, work, list, members, flops, bytes) any_##name,
#include "codelets/codelets.def"
};

static int compare(void *user, const struct smalti_bench_case *c)
{
	const struct smalti_op *op = &smalti_ops[c->op];
	int *compared = user;
	if (strncmp(c->label, "odd", 3) != 0)
		return 0;
	memset(marks, 0, sizeof(marks));
	operations = 0;
	counts[c->op](c->arguments);
	CHECK(op->flops(c->arguments) == operations, c->name);
	CHECK(op->bytes(c->arguments) == marked(), c->name);
	if (op->flops(c->arguments) != operations || op->bytes(c->arguments) != marked())
		printf("\n    %s: %g operations, counted %g; %g bytes, counted %g", c->name,
		       op->flops(c->arguments), operations, op->bytes(c->arguments), marked());
	++*compared;
	return 0;
}

static void formulas(void)
{
	int compared = 0;
	CHECK(smalti_bench_each(SMALTI_F32, compare, &compared) == 0, "all in f32");
	CHECK(smalti_bench_each(SMALTI_BF16, compare, &compared) == 0, "all in bf16");
	CHECK(smalti_bench_each(SMALTI_F16, compare, &compared) == 0, "all in f16");
	CHECK(compared >= 3 * SMALTI_OPS, "every operation");
}

static const struct test tests[] = {
    {"formulas", formulas},
};

TEST_MAIN("counts", tests)
