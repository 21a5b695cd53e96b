/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with weights that are 8-bit rows, against the reference's. */
#include "base/fp8.h"
#include "base/int8.h"
#include "golden.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "kernels/matmul_w8a8.h"

#include <math.h>

#include <stdlib.h>

static const char *const cases[] = {"one", "odd", "prime", "dit", "blocks", "outliers", "ties"};

static const struct smalti_tensor_view *find(const struct smalti_safetensors *file, const char *name,
					     const char *part)
{
	char text[64];
	snprintf(text, sizeof(text), "%s.%s", name, part);
	return smalti_safetensors_find(file, text);
}

/* Makes rows with scales, as forms of weights are, of codes and scales; one of these may be all rows'. */
static char *rows_of(int64_t rows, int64_t columns, const char *codes, const float *scales,
		     int64_t scale_count)
{
	const int64_t stride = smalti_rows8_stride(columns);
	char *made = calloc((size_t)rows, (size_t)stride);
	for (int64_t r = 0; r < rows; r++) {
		memcpy(made + r * stride, codes + r * columns, (size_t)columns);
		memcpy(made + r * stride + smalti_rows8_scale_at(columns), &scales[r % scale_count],
		       sizeof(float));
	}
	return made;
}

/* Multiplies in a dtype; x consists of two parts if `cut` is not 0. */
static void multiply(const struct smalti_matmul *matmul, const float *x, const char *weights,
		     enum smalti_dtype dtype, const float *bias, int64_t cut, float *y)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t size = smalti_dtype_bytes(matmul->compute), count = matmul->rows * matmul->in;
	char *operand = malloc((size_t)(count * size));
	smalti_narrow(matmul->compute, x, count, operand);
	const struct smalti_raw_columns parts[] = {{operand, cut ? cut : matmul->in, matmul->in},
						   {operand + cut * size, matmul->in - cut, matmul->in}};
	const struct smalti_raw_weight weight = {weights, dtype, smalti_raw_stride(dtype, matmul->in)};
	SUCCEEDS(smalti_matmul_raw(matmul, parts, cut ? 2 : 1, &weight, bias, NULL, matmul->out, y, &error),
		 &error, "product");
	free(operand);
}

/* A case of the reference: its weights in a form, and a result. */
struct layer {
	struct smalti_matmul matmul;
	float *x, *bias, *expected, *y; /* bias NULL: there is none */
	char *weights;
};

/* Reads a case; false: it has no weights of the form. */
static bool open_layer(struct layer *layer, const struct smalti_safetensors *file, const char *name,
		       const char *form, const char *result)
{
	static const float one = 1;
	char codes[32], factors[32];
	snprintf(codes, sizeof(codes), "%s.q", form);
	snprintf(factors, sizeof(factors), "%s.scale", form);
	const struct smalti_tensor_view *x = find(file, name, "x"), *q = find(file, name, codes),
					*scale = find(file, name, factors), *bias = find(file, name, "bias");
	if (!q)
		return false;
	const int64_t rows = x->shape[0], in = x->shape[1], out = q->shape[0];
	float *scales = scale ? golden_values(scale) : NULL;
	*layer = (struct layer){.matmul = {.rows = rows, .in = in, .out = out, .result = SMALTI_F32},
				.x = golden_values(x),
				.bias = bias ? golden_values(bias) : NULL,
				.expected = golden_values(find(file, name, result)),
				.y = calloc((size_t)(rows * out), sizeof(float)),
				.weights = rows_of(out, in, q->data, scale ? scales : &one,
						   scale ? smalti_tensor_elements(scale) : 1)};
	free(scales);
	return true;
}

static void close_layer(struct layer *layer)
{
	free(layer->x);
	free(layer->bias);
	free(layer->expected);
	free(layer->y);
	free(layer->weights);
}

/* Multiplies a case by its weights in a form; not every case has each. */
static void multiply_form(const struct smalti_safetensors *file, const char *name, const char *form,
			  enum smalti_dtype dtype)
{
	struct layer layer;
	char result[32];
	snprintf(result, sizeof(result), "%s.y", form);
	if (!open_layer(&layer, file, name, form, result))
		return;
	const int64_t in = layer.matmul.in;
	for (int64_t cut = 0; cut < 2 && cut < in; cut++) {
		multiply(&layer.matmul, layer.x, layer.weights, dtype, layer.bias, cut * (in / 3), layer.y);
		golden_near(layer.y, layer.expected, layer.matmul.rows * layer.matmul.out, 5e-6, result);
	}
	close_layer(&layer);
}

static void products_are_the_references(void)
{
	struct smalti_safetensors *file = golden_open("golden/quant/linear.safetensors");
	for (int i = 0; i < COUNT(cases); i++) {
		multiply_form(file, cases[i], "int8", SMALTI_I8);
		multiply_form(file, cases[i], "e4m3", SMALTI_E4M3);
		multiply_form(file, cases[i], "e4m3-row", SMALTI_E4M3);
		multiply_form(file, cases[i], "e5m2", SMALTI_E5M2);
	}
	smalti_safetensors_close(file);
}

/* Draws a code that is a finite number, and returns its value, which every dtype has. */
static float draw_code(enum smalti_dtype dtype, uint64_t *state, uint8_t *code)
{
	const struct smalti_fp8 *format = dtype == SMALTI_E4M3 ? &smalti_e4m3 : &smalti_e5m2;
	float value;
	do
		*code = (uint8_t)(int)(128 + 128 * test_random(state));
	while (dtype != SMALTI_I8 && (*code & 127) >= format->not_finite);
	if (dtype == SMALTI_I8)
		return (float)(int8_t)*code;
	smalti_fp8_widen(format, code, 1, &value);
	return value;
}

/* Rows and outputs beyond a block's, in each dtype: as with the codes in bf16, which are the same numbers,
 * times the scale. */
static void codes_are_exact_in_each_dtype(void)
{
	enum { ROWS = 300, IN = 200, OUT = 75 };
	static const enum smalti_dtype computes[] = {SMALTI_F32, SMALTI_BF16, SMALTI_F16};
	static const enum smalti_dtype dtypes[] = {SMALTI_I8, SMALTI_E4M3, SMALTI_E5M2};
	static float x[ROWS * IN], scales[OUT], y[ROWS * OUT], expected[ROWS * OUT];
	static uint8_t codes[OUT * IN];
	static uint16_t halves[OUT * IN];
	uint64_t state = 3;
	for (int i = 0; i < ROWS * IN; i++)
		x[i] = test_random(&state);
	for (int o = 0; o < OUT; o++)
		scales[o] = 0.5f + (float)o;
	for (int i = 0; i < COUNT(computes) * COUNT(dtypes); i++) {
		const enum smalti_dtype compute = computes[i / COUNT(dtypes)],
					dtype = dtypes[i % COUNT(dtypes)];
		struct smalti_error error = SMALTI_NO_ERROR;
		const struct smalti_matmul matmul = {
		    .rows = ROWS, .in = IN, .out = OUT, .compute = compute, .result = SMALTI_F32};
		bool drawn[256] = {false};
		for (int k = 0; k < OUT * IN; k++) {
			halves[k] = smalti_f32_to_bf16(draw_code(dtype, &state, &codes[k]));
			drawn[codes[k]] = true;
		}
		int kinds = 0;
		for (int k = 0; k < COUNT(drawn); k++)
			kinds += drawn[k];
		CHECK(kinds == (dtype == SMALTI_I8 ? 256 : dtype == SMALTI_E4M3 ? 254 : 248), "all codes");
		char *weights = rows_of(OUT, IN, (const char *)codes, scales, OUT);
		char *operand = malloc((size_t)(ROWS * IN) * 4);
		smalti_narrow(compute, x, ROWS * IN, operand);
		const struct smalti_raw_columns all = {operand, IN, IN};
		const struct smalti_raw_weight same = {halves, SMALTI_BF16, IN};
		multiply(&matmul, x, weights, dtype, NULL, 0, y);
		SUCCEEDS(smalti_matmul_raw(&matmul, &all, 1, &same, NULL, NULL, OUT, expected, &error),
			 &error, "product");
		for (int k = 0; k < ROWS * OUT; k++)
			expected[k] *= scales[k % OUT];
		CHECK(memcmp(y, expected, sizeof(y)) == 0, smalti_dtype_name(dtype));
		free(operand);
		free(weights);
	}
}

/* Returns the rows of the unit matrix: products with them are the integers themselves. */
static char *unit_rows(int64_t columns)
{
	char *integers = calloc((size_t)columns, (size_t)columns);
	float *scales = calloc((size_t)columns, sizeof(*scales));
	for (int64_t i = 0; i < columns; i++)
		integers[i * columns + i] = 1;
	char *rows = rows_of(columns, columns, integers, scales, columns);
	free(integers);
	free(scales);
	return rows;
}

/* The integers and the sums of every instruction set that this machine has are the reference's. */
static void sums_are_exact_on_all_instruction_sets(void)
{
	struct smalti_safetensors *file = golden_open("golden/quant/linear.safetensors");
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		const struct smalti_cpu_kernels *kernels = smalti_cpu_kernels((enum smalti_isa)isa);
		for (int i = 0; kernels && i < COUNT(cases); i++) {
			const struct smalti_tensor_view *x = find(file, cases[i], "x"),
							*q = find(file, cases[i], "int8.q");
			const int64_t rows = x->shape[0], in = x->shape[1], out = q->shape[0];
			const int64_t room = smalti_round_up(rows, SMALTI_W8A8_ROWS);
			const int8_t *expected = find(file, cases[i], "w8a8.xq")->data;
			float *values = golden_values(x),
			      *scales = golden_values(find(file, cases[i], "int8.scale"));
			float *found = calloc((size_t)rows, sizeof(*found));
			void *rounded = calloc((size_t)room, (size_t)smalti_w8a8_row_bytes(in));
			int32_t *sums = calloc((size_t)(rows * out), sizeof(*sums));
			char *weights = rows_of(out, in, q->data, scales, out), *one = unit_rows(in);
			int32_t *integers = calloc((size_t)(rows * in), sizeof(*integers));
			kernels->w8a8_round(rows, in, SMALTI_F32, values, rounded, found);
			kernels->w8a8_sums(rows, in, out, rounded, (const int8_t *)weights, sums);
			kernels->w8a8_sums(rows, in, in, rounded, (const int8_t *)one, integers);
			for (int64_t k = 0; k < rows * in; k++)
				CHECK(integers[k] == expected[k], cases[i]);
			CHECK(memcmp(found, find(file, cases[i], "w8a8.xscale")->data,
				     (size_t)rows * sizeof(*found)) == 0,
			      "scales");
			CHECK(memcmp(sums, find(file, cases[i], "w8a8.acc")->data,
				     (size_t)(rows * out) * sizeof(*sums)) == 0,
			      smalti_isa_name((enum smalti_isa)isa));
			free(values);
			free(scales);
			free(found);
			free(rounded);
			free(integers);
			free(one);
			free(sums);
			free(weights);
		}
	}
	smalti_safetensors_close(file);
}

static void products_of_integers_are_the_references(void)
{
	struct smalti_safetensors *file = golden_open("golden/quant/linear.safetensors");
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct layer layer;
		CHECK(open_layer(&layer, file, cases[i], "int8", "w8a8.y"), cases[i]);
		SUCCEEDS(smalti_matmul_w8a8(&layer.matmul, SMALTI_F32, layer.x, layer.weights, layer.bias,
					    NULL, layer.y, &error),
			 &error, cases[i]);
		golden_near(layer.y, layer.expected, layer.matmul.rows * layer.matmul.out, 5e-6, cases[i]);
		close_layer(&layer);
	}
	smalti_safetensors_close(file);
}

/* A value that is not finite makes its row NaN, and no other; more rows than a block are alike. */
static void what_is_no_number_stays_so(void)
{
	enum { ROWS = 130, IN = 20, OUT = 5 };
	static float x[ROWS * IN], y[ROWS * OUT];
	static int8_t integers[OUT * IN];
	float scales[OUT] = {1, 2, 3, 0, 5};
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_matmul matmul = {.rows = ROWS, .in = IN, .out = OUT, .result = SMALTI_F32};
	for (int i = 0; i < ROWS * IN; i++)
		x[i] = (float)(i % IN);
	for (int i = 0; i < OUT * IN; i++)
		integers[i] = (int8_t)i;
	x[3 * IN + 7] = NAN;
	x[100 * IN] = INFINITY;
	char *weights = rows_of(OUT, IN, (const char *)integers, scales, OUT);
	SUCCEEDS(smalti_matmul_w8a8(&matmul, SMALTI_F32, x, weights, NULL, NULL, y, &error), &error,
		 "product");
	for (int i = 0; i < ROWS * OUT; i++) {
		const int row = i / OUT;
		CHECK(row == 3 || row == 100 ? isnan(y[i]) : y[i] == y[i % OUT], "row");
	}
	free(weights);
}

static const struct test tests[] = {
    {"products are the reference's", products_are_the_references},
    {"codes are exact in each dtype", codes_are_exact_in_each_dtype},
    {"sums are exact on all instruction sets", sums_are_exact_on_all_instruction_sets},
    {"products of integers", products_of_integers_are_the_references},
    {"what is no number", what_is_no_number_stays_so},
};

TEST_MAIN("products with 8-bit rows", tests)
