/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "kernel_case.h"
#include "kernels/backward.h"
#include "kernels/kernels.h"

#include <math.h>

/* On both sides of tiles, of steps, of pieces of terms, and of blocks of rows and columns; the last are for
 * the library's BLAS. */
static const struct {
	int64_t rows, inner, columns;
} shapes[] = {
    {1, 1, 1},    {2, 3, 5},     {15, 31, 17},  {16, 32, 16},  {17, 33, 31},     {33, 64, 32},
    {40, 72, 65}, {32, 1281, 9}, {31, 2571, 3}, {5, 96, 5500}, {1990, 1025, 17}, {129, 515, 509},
};

static const struct {
	enum smalti_dtype a, b, compute, result;
} dtypes[] = {
    {SMALTI_F32, SMALTI_F32, SMALTI_F32, SMALTI_F32},    {SMALTI_F32, SMALTI_BF16, SMALTI_BF16, SMALTI_F32},
    {SMALTI_BF16, SMALTI_BF16, SMALTI_BF16, SMALTI_F32}, {SMALTI_BF16, SMALTI_F32, SMALTI_BF16, SMALTI_BF16},
    {SMALTI_F16, SMALTI_F32, SMALTI_F16, SMALTI_F16},    {SMALTI_F32, SMALTI_F16, SMALTI_BF16, SMALTI_F32},
};

/* What multiplies: the public function, or an instruction set's own kernel. */
typedef int product(const struct smalti_dense *dense, const void *a, const void *b, void *y);

static int by_choice(const struct smalti_dense *dense, const void *a, const void *b, void *y)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_dense(dense, a, b, y, &error);
}

static int by_kernel(enum smalti_isa isa, const struct smalti_dense *dense, const void *a, const void *b,
		     void *y)
{
	const struct smalti_cpu_kernels *kernels = smalti_cpu_kernels(isa);
	float *scratch = kernel_array(kernels->dense_bf16_scratch(dense), sizeof(*scratch));
	kernels->dense_bf16(dense, a, b, y, scratch);
	free(scratch);
	return 0;
}

static int by_pairs(const struct smalti_dense *dense, const void *a, const void *b, void *y)
{
	return by_kernel(SMALTI_ISA_AVX512_BF16, dense, a, b, y);
}

static int by_tiles(const struct smalti_dense *dense, const void *a, const void *b, void *y)
{
	return by_kernel(SMALTI_ISA_AMX, dense, a, b, y);
}

/* A matrix of a product, turned or not: what it has in memory, with `gap` elements that are not numbers
 * behind each row, and its values. */
struct matrix {
	float *values;
	void *given;
	int64_t stride; /* 0: there is no gap */
};

static struct matrix make_matrix(int64_t rows, int64_t columns, bool turned, int64_t gap,
				 enum smalti_dtype dtype, enum smalti_dtype compute, uint64_t *state)
{
	const int64_t stride = (turned ? rows : columns) + gap, count = (turned ? columns : rows) * stride;
	struct matrix m = {kernel_random(rows * columns, dtype, state), NULL, gap ? stride : 0};
	float *laid_out = kernel_array(count, sizeof(*laid_out));
	for (int64_t i = 0; i < count; i++)
		laid_out[i] = NAN;
	for (int64_t row = 0; row < rows; row++)
		for (int64_t column = 0; column < columns; column++)
			laid_out[turned ? column * stride + row : row * stride + column] =
			    m.values[row * columns + column];
	m.given = kernel_given(laid_out, count, dtype);
	for (int64_t i = 0; i < rows * columns; i++)
		m.values[i] = smalti_round(compute, m.values[i]);
	free(laid_out);
	return m;
}

/* Of some rows alone where there are many, as plain sums take long. */
static void compare(const struct smalti_dense *d, const float *a, const float *b, const float *before,
		    const float *found, struct kernel_error *error)
{
	const int64_t stride = d->y_stride ? d->y_stride : d->columns;
	for (int64_t row = 0; row<d->rows; row += d->rows> 100 ? 7 : 1)
		for (int64_t column = 0; column < d->columns; column++) {
			double sum = d->add ? (double)before[row * stride + column] : 0;
			if (d->bias)
				sum += (double)d->bias[column];
			for (int64_t i = 0; i < d->inner; i++)
				sum += (double)a[row * d->inner + i] * (double)b[i * d->columns + column];
			kernel_compare(error, (double)found[row * stride + column], sum);
		}
}

/* What lies between the rows of y stays as it is. */
static void check_gaps(const struct smalti_dense *d, const void *before, const void *after)
{
	const int64_t stride = d->y_stride ? d->y_stride : d->columns, size = smalti_dtype_bytes(d->result);
	bool kept = true;
	for (int64_t row = 0; row < d->rows; row++) {
		const int64_t at = (row * stride + d->columns) * size;
		kept = kept && memcmp((const char *)before + at, (const char *)after + at,
				      (size_t)((stride - d->columns) * size)) == 0;
	}
	CU_ASSERT(kept);
}

/* `kind` has a bit each for what is turned, added to, begun with a bias, and has gaps between its rows. */
static void check_product(size_t shape, size_t types, int kind, product *multiply)
{
	uint64_t state = 7;
	struct smalti_dense d = {.rows = shapes[shape].rows,
				 .inner = shapes[shape].inner,
				 .columns = shapes[shape].columns,
				 .turned_a = kind & 1,
				 .turned_b = kind & 2,
				 .add = kind & 4 && dtypes[types].result == SMALTI_F32,
				 .a_dtype = dtypes[types].a,
				 .b_dtype = dtypes[types].b,
				 .compute = dtypes[types].compute,
				 .result = dtypes[types].result};
	const bool gaps = kind & 16;
	const int64_t count = d.rows * (d.columns + (gaps ? 5 : 0));
	struct matrix a =
	    make_matrix(d.rows, d.inner, d.turned_a, gaps ? 3 : 0, d.a_dtype, d.compute, &state);
	struct matrix b =
	    make_matrix(d.inner, d.columns, d.turned_b, gaps ? 7 : 0, d.b_dtype, d.compute, &state);
	float *bias = kernel_random(d.columns, SMALTI_F32, &state);
	float *before = kernel_random(count, d.result, &state), *found = kernel_array(count, sizeof(*found));
	void *y = kernel_given(before, count, d.result), *y_before = kernel_given(before, count, d.result);
	struct kernel_error error = {0};
	if (kind & 8)
		d.bias = bias;
	d.a_stride = a.stride;
	d.b_stride = b.stride;
	d.y_stride = gaps ? count / d.rows : 0;
	CU_ASSERT_EQUAL(multiply(&d, a.given, b.given, y), 0);
	smalti_widen(d.result, y, count, found);
	compare(&d, a.values, b.values, before, found, &error);
	check_gaps(&d, y_before, y);
	kernel_check(&error,
		     d.result == SMALTI_F32   ? 3e-6
		     : d.result == SMALTI_F16 ? 1e-3
					      : 8e-3,
		     smalti_dtype_name(d.compute));
	free(a.values), free(a.given), free(b.values), free(b.given), free(bias), free(before), free(found),
	    free(y), free(y_before);
}

static void check_all(enum smalti_dtype compute, product *multiply)
{
	for (size_t shape = 0; shape < COUNT_OF(shapes); shape++)
		for (size_t types = 0; types < COUNT_OF(dtypes); types++)
			for (int kind = 0; kind < 32; kind++)
				if (dtypes[types].compute == compute)
					check_product(shape, types, kind, multiply);
}

static void multiplies_f32(void)
{
	check_all(SMALTI_F32, by_choice);
}

static void multiplies_bf16(void)
{
	check_all(SMALTI_BF16, by_choice);
}

static void multiplies_f16(void)
{
	check_all(SMALTI_F16, by_choice);
}

/* What this machine has, whether or not it is chosen here. */
static void has_own_kernels(void)
{
	if (strstr(smalti_isa_features(), "avx512_bf16"))
		check_all(SMALTI_BF16, by_pairs);
	if (smalti_isa() == SMALTI_ISA_AMX)
		check_all(SMALTI_BF16, by_tiles);
}

/* A result's bits are a matter of the shape alone: not of what is beside it, nor of how often it is asked
 * for. */
static void repeats(void)
{
	for (int compute = SMALTI_F32; compute <= SMALTI_BF16; compute++) {
		enum { ROWS = 300, INNER = 520, COLUMNS = 300 };
		uint64_t state = 3;
		float *a = kernel_random((int64_t)ROWS * INNER, SMALTI_F32, &state);
		float *b = kernel_random((int64_t)INNER * COLUMNS, SMALTI_F32, &state);
		float *y = kernel_array((int64_t)2 * ROWS * COLUMNS, sizeof(*y));
		const struct smalti_dense d = {
		    .rows = ROWS, .inner = INNER, .columns = COLUMNS, .compute = (enum smalti_dtype)compute};
		CU_ASSERT_EQUAL(by_choice(&d, a, b, y), 0);
		CU_ASSERT_EQUAL(by_choice(&d, a, b, y + (size_t)ROWS * COLUMNS), 0);
		CU_ASSERT_EQUAL(memcmp(y, y + (size_t)ROWS * COLUMNS, (size_t)ROWS * COLUMNS * sizeof(*y)),
				0);
		free(a), free(b), free(y);
	}
}

static const struct test tests[] = {
    {"multiplies f32", multiplies_f32},     {"multiplies bf16", multiplies_bf16},
    {"multiplies f16", multiplies_f16},     {"has kernels of its own", has_own_kernels},
    {"gives the same bits again", repeats},
};

TEST_MAIN("dense", tests)
