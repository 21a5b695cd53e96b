/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "kernel_case.h"
#include "kernels/conv.h"
#include "kernels/isa.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	int64_t rows, width, in, out;
	int stride;
} shapes[] = {
    {1, 1, 1, 1, 1},
    {1, 2, 1, 1, 2},
    {4, 8, 3, 32, 1},
    {3, 7, 4, 16, 1},
    {5, 13, 5, 5, 1},
    {2, 16, 16, 3, 1},
    {7, 33, 13, 17, 1},
    {2, 64, 32, 64, 1},
    {1, 9, 128, 3, 1},
    {3, 18, 8, 24, 2},
    {5, 6, 3, 17, 2},
    {2, 32, 64, 32, 2},
    {3, 5, 96, 128, 1},
    {16, 1, 4, 4, 1},
    {1, 130, 16, 16, 1},
    {4, 2, 5, 7, 2},
    {2, 11, 256, 8, 1},
    /* Winograd's tiles: one, ragged ones, more than a block of them, and blocks for many channels. */
    {1, 1, 16, 1, 1},
    {4, 4, 16, 16, 1},
    {9, 6, 33, 35, 1},
    {3, 3, 19, 50, 1},
    {13, 70, 16, 20, 1},
    {1, 517, 272, 248, 1},
};

struct operands {
	struct smalti_conv conv;
	float *x, *w, *bias, *y;
	void *x_given, *packed;
	double *expected;
};

static int64_t input_rows(const struct smalti_conv *c)
{
	return c->stride == 1 ? c->rows + 2 : 2 * c->rows + 1;
}

static int64_t output_count(const struct smalti_conv *c)
{
	return c->rows * (c->width / c->stride) * c->out;
}

/* The sum over the taps of one output; columns outside of the image are zero. */
static double taps(const struct operands *o, int64_t row, int64_t column, int64_t channel)
{
	const struct smalti_conv *c = &o->conv;
	double sum = 0;
	for (int64_t ky = 0; ky < 3; ky++)
		for (int64_t kx = 0; kx < 3; kx++) {
			int64_t at = column * c->stride + kx - (c->stride == 1);
			if (at < 0 || at >= c->width)
				continue;
			const float *x = o->x + ((row * c->stride + ky) * c->width + at) * c->in;
			const float *w = o->w + channel * c->in * 9 + ky * 3 + kx;
			for (int64_t i = 0; i < c->in; i++)
				sum += (double)x[i] * (double)w[i * 9];
		}
	return sum;
}

static void compute_expected(struct operands *o)
{
	const struct smalti_conv *c = &o->conv;
	int64_t width = c->width / c->stride;
	for (int64_t i = 0; i < output_count(c); i++) {
		int64_t channel = i % c->out, column = i / c->out % width, row = i / c->out / width;
		o->expected[i] = (double)o->bias[channel] + taps(o, row, column, channel) +
				 (c->residual ? (double)o->y[i] : 0);
	}
}

static struct operands make(struct smalti_conv conv)
{
	uint64_t state = 3;
	struct operands o = {.conv = conv};
	int64_t x_count = input_rows(&conv) * conv.width * conv.in;
	o.x = kernel_random(x_count, conv.compute, &state);
	o.w = kernel_random(conv.out * conv.in * 9, conv.compute, &state);
	o.bias = kernel_random(conv.out, SMALTI_F32, &state);
	o.y = kernel_random(output_count(&conv), SMALTI_F32, &state);
	o.x_given = kernel_given(o.x, x_count, conv.compute);
	o.expected = kernel_array(output_count(&conv), sizeof(double));
	compute_expected(&o);
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t bytes = smalti_conv_packed_bytes(conv.in, conv.out, conv.stride, conv.compute, &error);
	SUCCEEDS(bytes < 0 ? -1 : 0, &error, "packed bytes");
	o.packed = kernel_array(bytes, 1);
	SUCCEEDS(smalti_conv_pack(conv.in, conv.out, conv.stride, conv.compute, o.w, SMALTI_F32,
				  (struct smalti_packed){o.packed, bytes}, &error),
		 &error, "pack");
	return o;
}

static void drop(struct operands *o)
{
	free(o->x);
	free(o->w);
	free(o->bias);
	free(o->y);
	free(o->x_given);
	free(o->expected);
	free(o->packed);
}

static float *run(const struct operands *o, const char *what)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	float *y = kernel_array(output_count(&o->conv), 4);
	memcpy(y, o->y, (size_t)output_count(&o->conv) * 4);
	SUCCEEDS(smalti_conv(&o->conv, o->x_given, o->packed, o->bias, y, &error), &error, what);
	return y;
}

/* Sums of 9·in products in f32 err by about the root of their number of roundings. */
static void check_case(struct smalti_conv conv)
{
	char what[160];
	snprintf(what, sizeof(what), "%lldx%lld %lld->%lld stride %d %s%s", (long long)conv.rows,
		 (long long)conv.width, (long long)conv.in, (long long)conv.out, conv.stride,
		 smalti_dtype_name(conv.compute), conv.residual ? " residual" : "");
	struct operands o = make(conv);
	float *y = run(&o, what), *again = run(&o, what);
	CHECK(!memcmp(y, again, (size_t)output_count(&conv) * 4), what);
	struct kernel_error off = {0};
	for (int64_t i = 0; i < output_count(&conv); i++)
		kernel_compare(&off, (double)y[i], o.expected[i]);
	kernel_check(&off, 1e-6 + 1e-7 * sqrt(9. * (double)conv.in), what);
	free(y);
	free(again);
	drop(&o);
}

static void agrees_with_plain_sums(void)
{
	for (int s = 0; s < COUNT(shapes); s++)
		for (int i = 0; i < 6; i++)
			check_case((struct smalti_conv){shapes[s].rows, shapes[s].width, shapes[s].in,
							shapes[s].out, shapes[s].stride,
							(enum smalti_dtype)(i % 3), i / 3});
}

enum { ROWS = 12, WIDTH = 20, IN = 16, OUT = 24 };

/* The image `o` in bands of these rows, with their halo rows: the largest difference from the whole. */
static double difference_of_bands(const struct operands *o, const int64_t *bands)
{
	struct smalti_conv conv = o->conv;
	float *whole = run(o, "whole"), *y = kernel_array(output_count(&conv), 4);
	int64_t row = 0;
	for (; row < ROWS; row += *bands++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		conv.rows = *bands;
		SUCCEEDS(smalti_conv(&conv, o->x + row * conv.stride * WIDTH * IN, o->packed, o->bias,
				     y + row * (WIDTH / conv.stride) * OUT, &error),
			 &error, "band");
	}
	CU_ASSERT_EQUAL(row, ROWS);
	double difference =
	    test_max_error(whole, y, output_count(&o->conv)) / test_max_abs(whole, output_count(&o->conv));
	free(whole);
	free(y);
	return difference;
}

/* Bands give the image's rows; to the bit when their tiles are the image's. */
static void bands_join(void)
{
	static const int64_t odd[] = {5, 1, 6}, even[] = {8, 4};
	for (int stride = 1; stride <= 2; stride++) {
		struct operands o =
		    make((struct smalti_conv){ROWS, WIDTH, IN, OUT, stride, SMALTI_F32, false});
		CHECK(difference_of_bands(&o, even) == 0, "bands of whole tiles");
		CHECK(difference_of_bands(&o, odd) <= (stride == 1 ? 2e-6 : 0), "odd bands");
		drop(&o);
	}
}

/* A checkpoint's tensor in another dtype at an odd address packs to what its values pack to. */
static void check_packing(int64_t in, int64_t out)
{
	const int64_t count = in * out * 9;
	static const enum smalti_dtype dtypes[] = {SMALTI_F16, SMALTI_BF16, SMALTI_F32};
	for (int d = 0; d < COUNT(dtypes); d++) {
		uint64_t state = 5;
		float *w = kernel_random(count, SMALTI_F32, &state);
		struct misaligned odd = kernel_misalign(dtypes[d], w, count);
		struct smalti_error error = SMALTI_NO_ERROR;
		int64_t bytes = smalti_conv_packed_bytes(in, out, 1, SMALTI_F32, &error);
		void *packed[2] = {kernel_array(bytes, 1), kernel_array(bytes, 1)};
		SUCCEEDS(smalti_conv_pack(in, out, 1, SMALTI_F32, odd.data, dtypes[d],
					  (struct smalti_packed){packed[0], bytes}, &error),
			 &error, "narrow");
		SUCCEEDS(smalti_conv_pack(in, out, 1, SMALTI_F32, w, SMALTI_F32,
					  (struct smalti_packed){packed[1], bytes}, &error),
			 &error, "wide");
		CU_ASSERT_EQUAL(memcmp(packed[0], packed[1], (size_t)bytes), 0);
		free(packed[0]);
		free(packed[1]);
		free(odd.block);
		free(w);
	}
}

static void packs_any_dtype(void)
{
	check_packing(5, 19);
	check_packing(21, 19);
}

static int call(const void *operands, void *y, struct smalti_error *error)
{
	const struct operands *o = operands;
	return smalti_conv(&o->conv, o->x_given, o->packed, o->bias, y, error);
}

static void threads_agree(void)
{
	for (enum smalti_dtype compute = SMALTI_F32; compute <= SMALTI_BF16; compute++) {
		struct operands o = make((struct smalti_conv){7, 33, 23, 17, 1, compute, false});
		float *alone = run(&o, "alone");
		kernel_check_threads(call, &o, alone, output_count(&o.conv) * 4);
		free(alone);
		drop(&o);
	}
}

static void refuses_what_it_cannot_do(void)
{
	static const struct {
		struct smalti_conv conv;
		const char *word;
	} cases[] = {
	    {{-1, 4, 4, 4, 1, SMALTI_F32, false}, "-1 rows"},
	    {{1, -4, 4, 4, 1, SMALTI_F32, false}, "-4 wide"},
	    {{1, 4, 0, 4, 1, SMALTI_F32, false}, "0 in"},
	    {{1, 4, 4, INT64_MAX, 1, SMALTI_F32, false}, "out"},
	    {{1, 4, 4, 4, 3, SMALTI_F32, false}, "stride 3"},
	    {{1, 5, 4, 4, 2, SMALTI_F32, false}, "width 5"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_conv(&cases[i].conv, NULL, NULL, NULL, NULL, &error), &error, SMALTI_EINVAL,
		      cases[i].word, cases[i].word);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_conv none = {0, 4, 4, 4, 1, SMALTI_F32, false};
	SUCCEEDS(smalti_conv(&none, NULL, NULL, NULL, NULL, &error), &error, "no rows");
}

/* A quarter of the products in f32 beats all of them in bf16, but for AMX; and never is bf16 left to direct
 * sums in f32 where f32 itself has Winograd's form. */
static void bf16_takes_the_faster_form(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t f32 = smalti_conv_packed_bytes(256, 256, 1, SMALTI_F32, &error);
	const int64_t bf16 = smalti_conv_packed_bytes(256, 256, 1, SMALTI_BF16, &error);
	if (smalti_isa() == SMALTI_ISA_AMX)
		CU_ASSERT_EQUAL(bf16, 256 * 256 * 9 * 2)
	else
		CU_ASSERT_EQUAL(bf16, f32);
}

static const struct test tests[] = {
    {"agrees with plain sums", agrees_with_plain_sums},
    {"bands join", bands_join},
    {"packs any dtype", packs_any_dtype},
    {"threads agree", threads_agree},
    {"bf16 takes the faster form", bf16_takes_the_faster_form},
    {"refuses what it cannot do", refuses_what_it_cannot_do},
};

TEST_MAIN("conv", tests)
