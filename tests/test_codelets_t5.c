/* SPDX-License-Identifier: Apache-2.0
 *
 * What the codelets of T5 do between a task's buffers and the kernels: all of them on shards. */
#include "base/int8.h"
#include "base/rows8.h"
#include "codelet_case.h"
#include "kernels/conditioning.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const enum smalti_dtype dtypes[3] = {SMALTI_F16, SMALTI_F32, SMALTI_BF16};

static void embed_tokens(void)
{
	enum { VOCABULARY = 7, DIM = 5, TOKENS = 4, FIRST = 1, COLUMNS = 3 };
	static const int32_t ids[TOKENS] = {6, 0, 3, 6};
	static const int32_t wrong[][1] = {{VOCABULARY}, {-1}, {INT32_MAX}, {INT32_MIN}};
	uint64_t state = 4;
	for (int i = 0; i < COUNT(dtypes); i++) {
		float *rows = random_floats(VOCABULARY * DIM, &state), y[TOKENS * COLUMNS];
		struct misaligned table_of_rows = kernel_misalign(dtypes[i], rows, VOCABULARY * DIM);
		RUN(embed_tokens, (.ids = ids, .table = table_of_rows.data, .y = y), .tokens = TOKENS,
		    .dim = DIM, .vocabulary = VOCABULARY, .first = FIRST, .columns = COLUMNS,
		    .dtype = dtypes[i]);
		for (int token = 0; token < TOKENS; token++)
			CHECK(memcmp(y + token * COLUMNS, rows + ids[token] * DIM + FIRST,
				     COLUMNS * sizeof(float)) == 0,
			      "columns of the table's row");
		for (int j = 0; j < COUNT(wrong); j++) {
			struct smalti_error error = SMALTI_NO_ERROR;
			char id[16];
			snprintf(id, sizeof(id), "%d", (int)wrong[j][0]);
			int status =
			    CALL(embed_tokens, (.ids = wrong[j], .table = table_of_rows.data, .y = y), &error,
				 .tokens = 1, .dim = DIM, .vocabulary = VOCABULARY, .columns = DIM,
				 .dtype = dtypes[i]);
			FAILS(status, &error, SMALTI_EFORMAT, "id outside of the vocabulary", id, "7");
		}
		free(table_of_rows.block);
		free(rows);
	}
}

static void buckets(void)
{
	/* docs/reference.md 2.2: the first distance of each bucket of one side, of 32 for up to 128. */
	static const int64_t first[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91, 1 << 20};
	for (int bucket = 0; bucket < 16; bucket++)
		for (int64_t n = first[bucket]; n < first[bucket + 1]; n += n < 300 ? 1 : 50000) {
			CHECK(smalti_relative_bucket(-n, 32, 128) == bucket, "before");
			CHECK(smalti_relative_bucket(n, 32, 128) == (n ? 16 + bucket : 0), "after");
		}
}

static void relative_bias(void)
{
	enum { HEADS = 3, BUCKETS = 8, REACH = 40, LENGTH = 2 * REACH - 1 };
	uint64_t state = 5;
	float *values = random_floats(HEADS * BUCKETS, &state), bias[HEADS * LENGTH];
	RUN(relative_bias, (.table = values, .bias = bias), .heads = HEADS, .buckets = BUCKETS,
	    .max_distance = 16, .reach = REACH);
	for (int head = 0; head < HEADS; head++)
		for (int r = 1 - REACH; r < REACH; r++)
			CHECK(bias[head * LENGTH + r + REACH - 1] ==
				  values[smalti_relative_bucket(r, BUCKETS, 16) * HEADS + head],
			      "bias");
	free(values);
}

/* x [rows, dim] as shards of these columns, behind `skipped` rows of nothing. */
static void cut(const float *x, int64_t rows, int64_t skipped, int shards, const int64_t *columns,
		float **shard)
{
	int64_t dim = 0, first = 0;
	for (int i = 0; i < shards; i++)
		dim += columns[i];
	for (int i = 0; i < shards; first += columns[i++]) {
		shard[i] = fresh_floats((skipped + rows) * columns[i]);
		for (int64_t j = 0; j < skipped * columns[i]; j++)
			shard[i][j] = NAN;
		for (int64_t row = 0; row < rows; row++)
			memcpy(shard[i] + (skipped + row) * columns[i], x + row * dim + first,
			       (size_t)columns[i] * sizeof(float));
	}
}

static void rmsnorm(void)
{
	enum { ROWS = 3, DIM = 23, SHARDS = 4, SKIPPED = 2 };
	static const int64_t columns[SHARDS] = {1, 9, 11, 2};
	uint64_t state = 6;
	float *x = random_floats(ROWS * DIM, &state), *weight = random_floats(DIM, &state);
	float *shard[SHARDS], y[ROWS * DIM];
	cut(x, ROWS, SKIPPED, SHARDS, columns, shard);
	RUN(rmsnorm, (.x = {shard[0], shard[1], shard[2], shard[3]}, .weight = weight, .y = y), .rows = ROWS,
	    .dim = DIM, .first_row = SKIPPED, .columns = {columns[0], columns[1], columns[2], columns[3]},
	    .epsilon = 1e-3f);
	for (int i = 0; i < ROWS * DIM; i++) {
		const float *row = x + i / DIM * DIM;
		double squares = 0;
		for (int j = 0; j < DIM; j++)
			squares += (double)row[j] * (double)row[j];
		double expected =
		    (double)weight[i % DIM] * (double)x[i] / sqrt(squares / DIM + (double)1e-3f);
		CHECK(fabs((double)y[i] - expected) < 1e-6, "rmsnorm of shards");
	}
	for (int i = 0; i < SHARDS; i++)
		free(shard[i]);
	free(x);
	free(weight);
}

/* x·Wᵀ of one row and one output, in double. */
static double product(const float *x, const float *w, int64_t in)
{
	double sum = 0;
	for (int64_t i = 0; i < in; i++)
		sum += (double)x[i] * (double)w[i];
	return sum;
}

/* Some of the heads, of captions that do not see each other. */
static void attend_heads(void)
{
	enum { IN = 9, HEADS = 5, FIRST = 1, TAKEN = 3, DIM = 2, TOKENS = 8, CAPTIONS = 3, REACH = 6 };
	enum { LENGTH = 2 * REACH - 1, COLUMNS = TAKEN * DIM };
	static const int64_t starts[CAPTIONS + 1] = {0, 1, 6, TOKENS};
	uint64_t state = 8;
	float *x = random_floats(TOKENS * IN, &state), *bias = random_floats(HEADS * LENGTH, &state);
	float *w[3], y[TOKENS * COLUMNS];
	struct misaligned raw[3];
	for (int i = 0; i < 3; i++) {
		w[i] = random_floats(HEADS * DIM * IN, &state);
		raw[i] = kernel_misalign(dtypes[i], w[i], HEADS * DIM * IN);
	}
	RUN(attend_heads,
	    (.x = x, .q = raw[0].data, .k = raw[1].data, .v = raw[2].data, .bias = bias, .starts = starts,
	     .y = y),
	    .tokens = TOKENS, .in = IN, .first_head = FIRST, .heads = TAKEN, .head_dim = DIM,
	    .captions = CAPTIONS, .bias_reach = REACH, .dtype = {dtypes[0], dtypes[1], dtypes[2]});
	for (int caption = 0; caption < CAPTIONS; caption++)
		for (int64_t i = starts[caption]; i < starts[caption + 1]; i++)
			for (int column = 0; column < COLUMNS; column++) {
				const int64_t head = FIRST + column / DIM, at = FIRST * DIM + column;
				double weights = 0, sum = 0;
				for (int64_t j = starts[caption]; j < starts[caption + 1]; j++) {
					double score = (double)bias[head * LENGTH + j - i + REACH - 1];
					for (int64_t d = head * DIM; d < (head + 1) * DIM; d++)
						score += product(x + i * IN, w[0] + d * IN, IN) *
							 product(x + j * IN, w[1] + d * IN, IN);
					weights += exp(score);
					sum += exp(score) * product(x + j * IN, w[2] + at * IN, IN);
				}
				CHECK(fabs((double)y[i * COLUMNS + column] - sum / weights) < 1e-5,
				      "heads of captions");
			}
	for (int i = 0; i < 3; i++) {
		free(raw[i].block);
		free(w[i]);
	}
	free(x);
	free(bias);
}

static double gelu(double z)
{
	return 0.5 * z * (1 + tanh(sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
}

static void geglu(void)
{
	enum { ROWS = 3, IN = 11, OUT = 7, FIRST = 2, COLUMNS = 5 };
	uint64_t state = 9;
	float *x = random_floats(ROWS * IN, &state), y[ROWS * COLUMNS];
	for (int i = 0; i < COUNT(dtypes); i++) {
		float *w0 = random_floats(OUT * IN, &state), *w1 = random_floats(OUT * IN, &state);
		const enum smalti_dtype other = dtypes[(i + 1) % COUNT(dtypes)];
		struct misaligned gate = kernel_misalign(dtypes[i], w0, OUT * IN),
				  weight = kernel_misalign(other, w1, OUT * IN);
		RUN(geglu, (.x = x, .gate = gate.data, .weight = weight.data, .y = y), .rows = ROWS, .in = IN,
		    .first = FIRST, .columns = COLUMNS, .dtype = {dtypes[i], other});
		for (int j = 0; j < ROWS * COLUMNS; j++) {
			const float *row = x + j / COLUMNS * IN;
			const int64_t at = (FIRST + j % COLUMNS) * IN;
			double expected = gelu(product(row, w0 + at, IN)) * product(row, w1 + at, IN);
			CHECK(fabs((double)y[j] - expected) < 1e-5, "gated gelu");
		}
		free(gate.block);
		free(weight.block);
		free(w0);
		free(w1);
	}
	free(x);
}

/* Makes rows of int8 of a matrix, for free(). */
static int8_t *int8_rows(const float *w, int64_t rows, int64_t in)
{
	const int64_t stride = smalti_rows8_stride(in);
	int8_t *made = calloc((size_t)rows, (size_t)stride);
	for (int64_t row = 0; row < rows; row++) {
		const float scale = smalti_int8_scale(w + row * in, in);
		smalti_int8_round(w + row * in, in, scale, made + row * stride);
		memcpy(made + row * stride + smalti_rows8_scale_at(in), &scale, sizeof(scale));
	}
	return made;
}

/* Rounds rows to those of int8 and back. */
static void round_rows(const float *x, int64_t rows, int64_t in, float *rounded)
{
	int8_t *integers = int8_rows(x, rows, in);
	for (int64_t row = 0; row < rows; row++)
		for (int64_t k = 0; k < in; k++)
			rounded[row * in + k] = smalti_int8_scale(x + row * in, in) *
						(float)integers[row * smalti_rows8_stride(in) + k];
	free(integers);
}

/* Operations that round x to rows of int8 do what they do with such an x, but for the order of sums. */
static void rounded_inputs(void)
{
	enum { IN = 37, ROWS = 5, HEADS = 3, FIRST = 1, DIM = 4, OUT = HEADS * DIM, COLUMNS = OUT - DIM };
	uint64_t state = 11;
	float *x = random_floats(ROWS * IN, &state), *bias = random_floats(HEADS * (2 * ROWS - 1), &state);
	float rounded[ROWS * IN], y[4][ROWS * COLUMNS];
	int8_t *w[3];
	for (int i = 0; i < 3; i++) {
		float *matrix = random_floats(OUT * IN, &state);
		w[i] = int8_rows(matrix, OUT, IN);
		free(matrix);
	}
	round_rows(x, ROWS, IN, rounded);
	for (int i = 0; i < 2; i++) {
		const float *from = i ? x : rounded;
		RUN(attend_heads, (.x = from, .q = w[0], .k = w[1], .v = w[2], .bias = bias, .y = y[i]),
		    .tokens = ROWS, .in = IN, .first_head = FIRST, .heads = HEADS - FIRST, .head_dim = DIM,
		    .captions = 1, .bias_reach = ROWS, .dtype = {SMALTI_I8, SMALTI_I8, SMALTI_I8},
		    .rounds_x = i);
		RUN(geglu, (.x = from, .gate = w[0], .weight = w[1], .y = y[2 + i]), .rows = ROWS, .in = IN,
		    .first = FIRST, .columns = COLUMNS, .dtype = {SMALTI_I8, SMALTI_I8}, .rounds_x = i);
	}
	for (int i = 0; i < ROWS * COLUMNS; i++) {
		CHECK(fabsf(y[0][i] - y[1][i]) < 1e-5f, "heads of rounded inputs");
		CHECK(fabsf(y[2][i] - y[3][i]) < 1e-5f, "gated gelu of rounded inputs");
	}
	for (int i = 0; i < 3; i++)
		free(w[i]);
	free(x);
	free(bias);
}

/* What f16 has not goes on as f32: the product of two sums of 300, and its product with 300. */
static void f16_goes_on_as_f32(void)
{
	enum { IN = 5 };
	uint16_t x[IN];
	float w[IN], hidden, y = 0;
	for (int i = 0; i < IN; i++) {
		x[i] = smalti_f32_to_f16(2);
		w[i] = 30;
	}
	RUN(geglu, (.x = x, .gate = w, .weight = w, .y = &hidden), .rows = 1, .in = IN, .columns = 1,
	    .compute = SMALTI_F16, .result = SMALTI_F32);
	CHECK(hidden == 90000, "gated gelu");
	RUN(sum_shards, (.x = {&hidden}, .weight = w, .y = &y), .rows = 1, .in = 1, .columns = 1,
	    .x_columns = {1});
	CHECK(y == 2700000, "sum of shards");
}

static void sum_shards(void)
{
	enum { ROWS = 3, IN = 13, OUT = 7, FIRST = 2, COLUMNS = 4, SHARDS = 3 };
	static const int64_t columns[SHARDS] = {2, 10, 1};
	uint64_t state = 10;
	float *x = random_floats(ROWS * IN, &state), *shard[SHARDS];
	cut(x, ROWS, 0, SHARDS, columns, shard);
	for (int i = 0; i < COUNT(dtypes); i++) {
		float *w = random_floats(OUT * IN, &state), *before = random_floats(ROWS * COLUMNS, &state);
		float y[ROWS * COLUMNS];
		struct misaligned weight = kernel_misalign(dtypes[i], w, OUT * IN);
		memcpy(y, before, sizeof(y));
		RUN(sum_shards, (.x = {shard[0], shard[1], shard[2]}, .weight = weight.data, .y = y),
		    .rows = ROWS, .in = IN, .first = FIRST, .columns = COLUMNS,
		    .x_columns = {columns[0], columns[1], columns[2]}, .dtype = dtypes[i]);
		for (int j = 0; j < ROWS * COLUMNS; j++) {
			double expected = (double)before[j] +
					  product(x + j / COLUMNS * IN, w + (FIRST + j % COLUMNS) * IN, IN);
			CHECK(fabs((double)y[j] - expected) < 1e-5, "sum of shards");
		}
		free(weight.block);
		free(w);
		free(before);
	}
	for (int i = 0; i < SHARDS; i++)
		free(shard[i]);
	free(x);
}

static const struct test tests[] = {
    {"embed_tokens", embed_tokens},     {"buckets", buckets},
    {"relative_bias", relative_bias},   {"rmsnorm", rmsnorm},
    {"attend_heads", attend_heads},     {"geglu", geglu},
    {"rounded inputs", rounded_inputs}, {"f16 goes on as f32", f16_goes_on_as_f32},
    {"sum_shards", sum_shards},
};

TEST_MAIN("codelets of T5", tests)
