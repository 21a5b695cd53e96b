/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "kernel_case.h"
#include "matmul_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows on both sides of every size of tile, several blocks of rows, of inputs and of outputs. */
static const struct {
	int64_t rows, in, out;
} shapes[] = {
    {1, 1, 1},     {1, 16, 32},     {2, 31, 7},      {3, 1, 17},    {4, 17, 19},   {5, 64, 24},
    {6, 33, 13},   {7, 100, 5},     {8, 129, 6},     {13, 257, 11}, {16, 48, 65},  {17, 63, 31},
    {40, 515, 9},  {61, 145, 97},   {41, 1037, 14},  {1, 4099, 67}, {9, 10243, 5}, {2, 2100, 200},
    {131, 83, 37}, {300, 4097, 3},  {14, 256, 32},   {15, 255, 33}, {28, 288, 64}, {29, 289, 95},
    {257, 771, 1}, {300, 200, 700}, {40, 130, 1701},
};

/* Elements between the end of a row and the next; bytes before the weights. */
static const struct {
	int64_t x, weight, y, offset;
} gaps[] = {{0, 0, 0, 0}, {3, 0, 5, 2}, {0, 7, 1, 1}, {16, 1, 0, 3}};

static const enum smalti_dtype weight_dtypes[] = {SMALTI_F16, SMALTI_BF16, SMALTI_F32};

/* A matrix of `dtype` with gaps, and its values in f32 without them. */
struct matrix {
	int64_t rows, columns, stride;
	enum smalti_dtype dtype;
	float *values;
	char *storage, *given;
	int64_t bytes;
};

/* Ends with the last element of the last row, so that a sanitizer sees what reads further; gaps are NaN. */
static struct matrix make_matrix(int64_t rows, int64_t columns, int64_t gap, int64_t offset,
				 enum smalti_dtype dtype, uint64_t *state)
{
	struct matrix m = {.rows = rows, .columns = columns, .stride = columns + gap, .dtype = dtype};
	int64_t size = smalti_dtype_bytes(dtype);
	m.bytes = ((rows - 1) * m.stride + columns) * size;
	m.values = kernel_array(rows * columns, 4);
	m.storage = malloc((size_t)(m.bytes + offset));
	if (!m.storage)
		abort();
	m.given = m.storage + offset;
	memset(m.storage, 0xff, (size_t)(m.bytes + offset));
	for (int64_t row = 0; row < rows; row++)
		for (int64_t column = 0; column < columns; column++) {
			float value = test_random(state);
			char *to = m.given + (row * m.stride + column) * size;
			smalti_narrow(dtype, &value, 1, to);
			smalti_widen(dtype, to, 1, &m.values[row * columns + column]);
		}
	return m;
}

static void drop_matrix(struct matrix *m)
{
	free(m->values);
	free(m->storage);
}

struct operands {
	struct smalti_matmul matmul;
	struct matrix x, weight, bias, operand, gate, y;
	double *expected;
};

static double rounded(const struct operands *o, float weight)
{
	return (double)smalti_round(o->matmul.compute, weight);
}

static void compute_expected(struct operands *o, bool bias)
{
	const struct smalti_matmul *m = &o->matmul;
	o->expected = kernel_array(m->rows * m->out, sizeof(double));
	for (int64_t column = 0; column < m->out; column++)
		for (int64_t row = 0; row < m->rows; row++) {
			double z = bias ? (double)o->bias.values[column] : 0;
			for (int64_t k = 0; k < m->in; k++)
				z += (double)o->x.values[row * m->in + k] *
				     rounded(o, o->weight.values[column * m->in + k]);
			const int64_t at = row * m->out + column;
			const bool gated = m->epilogue == SMALTI_EPILOGUE_GATE_ADD;
			o->expected[at] =
			    matmul_finish(m->epilogue, z, (double)o->y.values[at],
					  (double)(gated ? o->gate.values[column] : o->operand.values[at]));
		}
}

static struct operands make(struct smalti_matmul m, enum smalti_dtype weight_dtype, int gap, bool bias)
{
	uint64_t state = 1;
	struct operands o = {.matmul = m};
	o.x = make_matrix(m.rows, m.in, gaps[gap].x, 0, m.compute, &state);
	o.weight = make_matrix(m.out, m.in, gaps[gap].weight, gaps[gap].offset, weight_dtype, &state);
	o.bias = make_matrix(1, m.out, 0, 0, SMALTI_F32, &state);
	o.gate = make_matrix(1, m.out, 0, 0, SMALTI_F32, &state);
	o.operand = make_matrix(m.rows, m.out, gaps[gap].y, 0, m.result, &state);
	o.y = make_matrix(m.rows, m.out, gaps[gap].y, 0, m.result, &state);
	compute_expected(&o, bias);
	return o;
}

static void drop(struct operands *o)
{
	struct matrix *all[] = {&o->x, &o->weight, &o->bias, &o->gate, &o->operand, &o->y};
	for (int i = 0; i < COUNT(all); i++)
		drop_matrix(all[i]);
	free(o->expected);
}

/* Into a copy of y, or into the storage of y itself. */
static int run(const struct operands *o, bool bias, void *y, struct smalti_error *error)
{
	const struct smalti_raw_weight weight = {o->weight.given, o->weight.dtype, o->weight.stride};
	const struct smalti_raw_columns x = {o->x.given, o->matmul.in, o->x.stride};
	const void *operand = o->matmul.epilogue == SMALTI_EPILOGUE_GATE_ADD   ? o->gate.given
			      : o->matmul.epilogue == SMALTI_EPILOGUE_MULTIPLY ? o->operand.given
									       : NULL;
	return smalti_matmul_raw(&o->matmul, &x, 1, &weight,
				 bias ? (const float *)(const void *)o->bias.given : NULL, operand,
				 o->y.stride, y, error);
}

static void check_result(const struct operands *o, const char *y, const char *what)
{
	int64_t size = smalti_dtype_bytes(o->y.dtype);
	struct kernel_error off = {0};
	for (int64_t row = 0; row < o->y.rows; row++)
		for (int64_t column = 0; column < o->y.columns; column++) {
			float value;
			smalti_widen(o->y.dtype, y + (row * o->y.stride + column) * size, 1, &value);
			kernel_compare(&off, (double)value, o->expected[row * o->y.columns + column]);
		}
	kernel_check(&off, matmul_tolerance(&o->matmul), what);
}

static void check_gaps(const struct matrix *m, const char *y, const char *what)
{
	int64_t size = smalti_dtype_bytes(m->dtype), gap = (m->stride - m->columns) * size;
	bool touched = false;
	for (int64_t row = 0; row + 1 < m->rows; row++)
		for (int64_t i = 0; i < gap; i++)
			touched |= y[(row * m->stride + m->columns) * size + i] != (char)0xff;
	CHECK(!touched, what);
}

static void check_case(struct smalti_matmul m, enum smalti_dtype weight_dtype, int gap, bool bias)
{
	char what[160];
	snprintf(what, sizeof(what), "%lldx%lldx%lld %s %s->%s %s%s, gaps %d", (long long)m.rows,
		 (long long)m.in, (long long)m.out, smalti_dtype_name(weight_dtype),
		 smalti_dtype_name(m.compute), smalti_dtype_name(m.result), epilogue_names[m.epilogue],
		 bias ? " bias" : "", gap);
	struct operands o = make(m, weight_dtype, gap, bias);
	char *y = malloc((size_t)o.y.bytes), *again = malloc((size_t)o.y.bytes);
	if (!y || !again)
		abort();
	memcpy(y, o.y.given, (size_t)o.y.bytes);
	memcpy(again, o.y.given, (size_t)o.y.bytes);
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(run(&o, bias, y, &error), &error, what);
	SUCCEEDS(run(&o, bias, again, &error), &error, what);
	CHECK(!memcmp(y, again, (size_t)o.y.bytes), what);
	check_result(&o, y, what);
	check_gaps(&o.y, y, what);
	free(y);
	free(again);
	drop(&o);
}

/* Every dtype of each shape with one epilogue, and every epilogue with one of the dtypes. */
static void agrees_with_plain_sums(void)
{
	int turn = 0;
	for (int s = 0; s < COUNT(shapes); s++)
		for (int w = 0; w < COUNT(weight_dtypes); w++)
			for (int d = 0; d < MATMUL_DTYPES; d++, turn++) {
				struct smalti_matmul m = {shapes[s].rows,          shapes[s].in,
							  shapes[s].out,           matmul_dtypes[d].compute,
							  matmul_dtypes[d].result, SMALTI_EPILOGUE_NONE};
				check_case(m, weight_dtypes[w], turn % COUNT(gaps), turn / 4 % 2);
			}
}

static void has_every_epilogue(void)
{
	static const int picked[] = {3, 4, 10, 13, 14, 18};
	for (int s = 0; s < COUNT(picked); s++)
		for (int d = 0; d < MATMUL_DTYPES; d++)
			for (int e = 0; e < SMALTI_EPILOGUES; e++) {
				if (!matmul_has((enum smalti_epilogue)e, matmul_dtypes[d].result))
					continue;
				struct smalti_matmul m = {shapes[picked[s]].rows,  shapes[picked[s]].in,
							  shapes[picked[s]].out,   matmul_dtypes[d].compute,
							  matmul_dtypes[d].result, (enum smalti_epilogue)e};
				for (int bias = 0; bias < 2; bias++)
					check_case(m, SMALTI_F16, (s + e) % COUNT(gaps), bias);
			}
}

/* A row's bits are the same alone, among others, and on a range of the outputs. */
static void rows_are_independent(void)
{
	enum { ROWS = 259, IN = 5003, OUT = 29, FIRST = 8, SOME = 7 }; /* several blocks of rows */
	for (enum smalti_dtype compute = SMALTI_F32; compute <= SMALTI_BF16; compute++) {
		struct smalti_matmul m = {ROWS, IN, OUT, compute, SMALTI_F32, SMALTI_EPILOGUE_GELU};
		struct operands o = make(m, SMALTI_F16, 0, true);
		struct smalti_error error = SMALTI_NO_ERROR;
		float *all = kernel_array(ROWS * OUT, 4), *some = kernel_array(ROWS * SOME, 4);
		SUCCEEDS(run(&o, true, all, &error), &error, "all");
		int64_t size = smalti_dtype_bytes(m.compute);
		const struct smalti_raw_weight weight = {o.weight.given + FIRST * IN * 2, SMALTI_F16, IN};
		for (int64_t row = 0; row < ROWS; row += m.rows) {
			m.rows = row ? ROWS - 1 : 1;
			m.out = SOME;
			const struct smalti_raw_columns x = {o.x.given + row * IN * size, IN, IN};
			SUCCEEDS(smalti_matmul_raw(&m, &x, 1, &weight, (float *)(void *)o.bias.given + FIRST,
						   NULL, SOME, some + row * SOME, &error),
				 &error, "some");
		}
		for (int64_t row = 0; row < ROWS; row++)
			CHECK(!memcmp(all + row * OUT + FIRST, some + row * SOME, SOME * 4), "bits");
		free(all);
		free(some);
		drop(&o);
	}
}

/* x in parts gives what it gives in one, but for rounding, with every epilogue's bits of one call. */
static void takes_x_in_parts(void)
{
	enum { ROWS = 301, PARTS = 5 };
	static const int64_t columns[][PARTS] = {
	    {301, 399, 1, 130, 33}, {1, 2, 3, 4, 5}, {256, 256, 256, 256, 256}, {16, 1000, 7, 640, 128}};
	for (int c = 0; c < COUNT(columns); c++)
		for (enum smalti_dtype compute = SMALTI_F32; compute <= SMALTI_BF16; compute++) {
			int64_t in = 0;
			for (int i = 0; i < PARTS; i++)
				in += columns[c][i];
			struct smalti_matmul m = {ROWS, in, 37, compute, SMALTI_F32, SMALTI_EPILOGUE_ADD};
			struct operands o = make(m, SMALTI_BF16, 1, true);
			struct smalti_error error = SMALTI_NO_ERROR;
			const struct smalti_raw_weight weight = {o.weight.given, o.weight.dtype,
								 o.weight.stride};
			struct smalti_raw_columns x[PARTS];
			int64_t column = 0;
			for (int i = 0; i < PARTS; column += columns[c][i++])
				x[i] = (struct smalti_raw_columns){o.x.given +
								       column * smalti_dtype_bytes(compute),
								   columns[c][i], o.x.stride};
			SUCCEEDS(smalti_matmul_raw(&m, x, PARTS, &weight, (float *)(void *)o.bias.given, NULL,
						   o.y.stride, o.y.given, &error),
				 &error, "parts");
			check_result(&o, o.y.given, "parts");
			drop(&o);
		}
}

/* Each f16 value alone in its row of W: subnormals, infinities and NaN come through. */
static void knows_every_f16(void)
{
	enum { VALUES = 1 << 16, IN = 3, OUT = VALUES, ROWS = 2 };
	uint16_t *w = kernel_array(OUT * IN, 2);
	float *y = kernel_array(ROWS * OUT, 4);
	memset(w, 0, OUT * IN * 2);
	for (int i = 0; i < VALUES; i++)
		w[i * IN + 1] = (uint16_t)i;
	static const float x[ROWS * IN] = {5, 1, 7, 0, 0, 0};
	const struct smalti_raw_weight weight = {w, SMALTI_F16, IN};
	const struct smalti_raw_columns columns = {x, IN, IN};
	struct smalti_matmul m = {ROWS, IN, OUT, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE};
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_matmul_raw(&m, &columns, 1, &weight, NULL, NULL, OUT, y, &error), &error, "f16");
	int wrong = 0;
	for (int i = 0; i < VALUES; i++) {
		float value = smalti_f16_to_f32((uint16_t)i);
		bool finite = isfinite(value);
		wrong += isnan(value) ? !isnan(y[i]) : y[i] != value;
		wrong += finite ? y[OUT + i] != 0 : !isnan(y[OUT + i]);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	free(w);
	free(y);
}

static void refuses_what_it_cannot_do(void)
{
	static const struct {
		struct smalti_matmul matmul;
		int64_t x_columns, x_stride, weight_stride, y_stride;
		const char *word;
	} cases[] = {
	    {{-1, 4, 4, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, 4, 4, 4, 4, "-1 rows"},
	    {{1, 0, 4, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, 0, 4, 4, 4, "0 in"},
	    {{1, 4, INT64_MAX, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, 4, 4, 4, INT64_MAX, "out"},
	    {{1, 4, 5, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE},
	     4,
	     4,
	     INT64_MAX,
	     5,
	     "weights 9223372036854775807"},
	    {{1, 4, 5, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, 4, 3, 4, 5, "stride of 3"},
	    {{1, 4, 5, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, 4, 4, 3, 5, "weights 3"},
	    {{1, 4, 5, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, 4, 4, 4, 4, "y 4"},
	    {{1, 4, 4, SMALTI_F16, SMALTI_F16, SMALTI_EPILOGUE_GATE_ADD}, 4, 4, 4, 4, "f16"},
	    {{1, 4, 4, SMALTI_F32, SMALTI_BF16, SMALTI_EPILOGUE_ADD}, 4, 4, 4, 4, "bf16"},
	    {{1, 4, 5, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, 3, 4, 4, 5, "3 columns, expected 4"},
	    {{1, 4, 5, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, 5, 5, 4, 5, "5 columns"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const struct smalti_raw_weight weight = {NULL, SMALTI_F32, cases[i].weight_stride};
		const struct smalti_raw_columns x = {NULL, cases[i].x_columns, cases[i].x_stride};
		FAILS(smalti_matmul_raw(&cases[i].matmul, &x, 1, &weight, NULL, NULL, cases[i].y_stride, NULL,
					&error),
		      &error, SMALTI_EINVAL, cases[i].word, cases[i].word);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_matmul none = {0, 4, 4, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE};
	const struct smalti_raw_weight weight = {NULL, SMALTI_F16, 4};
	const struct smalti_raw_columns x = {NULL, 4, 4};
	SUCCEEDS(smalti_matmul_raw(&none, &x, 1, &weight, NULL, NULL, 4, NULL, &error), &error, "no rows");
}

static const struct test tests[] = {
    {"agrees with plain sums", agrees_with_plain_sums},
    {"has every epilogue", has_every_epilogue},
    {"rows are independent", rows_are_independent},
    {"takes x in parts", takes_x_in_parts},
    {"knows every f16", knows_every_f16},
    {"refuses what it cannot do", refuses_what_it_cannot_do},
};

TEST_MAIN("matmul_raw", tests)
