/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "kernels/groupnorm.h"
#include "kernels/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 * 1024 };
static float x[MOST], y[MOST], first[2048], second[2048];
static uint16_t half[MOST], other_half[MOST];

static void fill(float *to, int64_t count, double mean, double spread, uint64_t seed)
{
	for (int64_t i = 0; i < count; i++)
		to[i] = (float)(mean + spread * (double)test_random(&seed));
}

static const char *name_of(int isa, const char *what, int64_t a, int64_t b)
{
	static char name[128];
	snprintf(name, sizeof(name), "%s, %s %lld %lld", smalti_isa_name((enum smalti_isa)isa), what,
		 (long long)a, (long long)b);
	return name;
}

static const struct {
	int64_t rows, dim;
	double mean, spread;
} rows[] = {
    {1, 1, 0, 1},      {3, 2, 5, 1},       {2, 7, 0, 1},   {5, 16, -3, 2},     {3, 17, 0, 1},
    {2, 63, 100, 1},   {4, 72, 0, 1e3},    {3, 144, 0, 1}, {7, 1152, 0.5, 3},  {2, 1153, 1e4, 1},
    {1, 2000, 1e4, 1}, {2, 1152, 0, 1e-4}, {0, 8, 0, 1},   {2, 1152, -1e6, 1},
};

static double mean_of(int64_t dim, const float *row)
{
	double sum = 0;
	for (int64_t i = 0; i < dim; i++)
		sum += (double)row[i];
	return sum / (double)dim;
}

static double variance_of(int64_t dim, const float *row, double mean)
{
	double sum = 0;
	for (int64_t i = 0; i < dim; i++)
		sum += ((double)row[i] - mean) * ((double)row[i] - mean);
	return sum / (double)dim;
}

/* Normalised values are a few units in size; their error stays at some units of the last place of f32
 * however large the mean. */
static void layernorm_agrees_with_double(void)
{
	for (size_t c = 0; c < COUNT(rows); c++) {
		int64_t dim = rows[c].dim, count = rows[c].rows * dim;
		fill(x, count, rows[c].mean, rows[c].spread, 1);
		fill(first, dim, 0, 2, 2);
		fill(second, dim, 0, 1, 3);
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			const struct smalti_cpu_kernels *kernels = smalti_cpu_kernels((enum smalti_isa)isa);
			kernels->layernorm_modulate(rows[c].rows, dim, x, 1e-6f, first, second, SMALTI_F32,
						    y);
			kernels->layernorm_modulate(rows[c].rows, dim, x, 1e-6f, first, second, SMALTI_BF16,
						    half);
			kernels->layernorm_modulate(rows[c].rows, dim, x, 1e-6f, first, second, SMALTI_F16,
						    other_half);
			double worst = 0;
			bool rounded = true;
			for (int64_t i = 0; i < count; i++) {
				const float *row = x + i / dim * dim;
				double mean = mean_of(dim, row);
				double normal =
				    ((double)x[i] - mean) / sqrt(variance_of(dim, row, mean) + 1e-6);
				double expected =
				    normal * (1 + (double)second[i % dim]) + (double)first[i % dim];
				worst = fmax(worst, fabs((double)y[i] - expected));
				rounded = rounded && half[i] == smalti_f32_to_bf16(y[i]) &&
					  other_half[i] == smalti_f32_to_f16(y[i]);
			}
			CHECK(worst < 3e-6, name_of(isa, "layernorm", rows[c].rows, dim));
			CHECK(rounded, name_of(isa, "layernorm of 16 bits", rows[c].rows, dim));
		}
	}
}

static void rmsnorm_agrees_with_double(void)
{
	for (size_t c = 0; c < COUNT(rows); c++) {
		int64_t dim = rows[c].dim, count = rows[c].rows * dim;
		fill(x, count, rows[c].mean, rows[c].spread, 4);
		fill(first, dim, 1, 0.5, 5);
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			const struct smalti_cpu_kernels *kernels = smalti_cpu_kernels((enum smalti_isa)isa);
			kernels->rmsnorm(rows[c].rows, dim, x, 1e-6f, first, SMALTI_F32, y);
			kernels->rmsnorm(rows[c].rows, dim, x, 1e-6f, first, SMALTI_BF16, half);
			double worst = 0;
			bool rounded = true;
			for (int64_t i = 0; i < count; i++) {
				const float *row = x + i / dim * dim;
				double expected = (double)first[i % dim] * (double)x[i] /
						  sqrt(variance_of(dim, row, 0) + 1e-6);
				worst = fmax(worst, fabs((double)y[i] - expected));
				rounded = rounded && half[i] == smalti_f32_to_bf16(y[i]);
			}
			CHECK(worst < 2e-6, name_of(isa, "rmsnorm", rows[c].rows, dim));
			CHECK(rounded, name_of(isa, "rmsnorm bf16", rows[c].rows, dim));
		}
	}
}

static const struct {
	int64_t pixels, channels, groups;
	double mean, spread;
} maps[] = {
    {1, 1, 1, 0, 1},       {1, 8, 2, 3, 1},       {17, 16, 16, 0, 1},   {100, 32, 16, 0, 1},
    {33, 64, 16, 1e4, 1},  {31, 128, 16, 0, 1},   {50, 256, 16, 0, 1},  {41, 33, 11, 1e4, 1},
    {101, 20, 4, -1e4, 1}, {60, 512, 32, 0, 1e3}, {13, 777, 7, 1e4, 1}, {1000, 24, 8, 0, 1},
    {7, 1024, 1, 0, 1},    {61, 8, 4, 1, 2},      {1003, 4, 2, 0, 1},   {29, 2, 1, 3, 1},
};

static void moments_agree_with_long_double(void)
{
	struct smalti_moments moments[64];
	for (size_t c = 0; c < COUNT(maps); c++) {
		int64_t pixels = maps[c].pixels, channels = maps[c].channels, groups = maps[c].groups;
		int64_t each = channels / groups;
		fill(x, pixels * channels, maps[c].mean, maps[c].spread, 6);
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			smalti_cpu_kernels((enum smalti_isa)isa)
			    ->groupnorm_moments(pixels, channels, groups, x, moments);
			bool ok = true;
			for (int64_t g = 0; g < groups; g++) {
				long double sum = 0, squares = 0, count = (long double)(pixels * each);
				for (int64_t i = 0; i < pixels * each; i++)
					sum += (long double)x[i / each * channels + g * each + i % each];
				for (int64_t i = 0; i < pixels * each; i++) {
					long double deviation =
					    (long double)x[i / each * channels + g * each + i % each] -
					    sum / count;
					squares += deviation * deviation;
				}
				ok = ok && moments[g].count == (double)count &&
				     fabs(moments[g].mean - (double)(sum / count)) <
					 1e-13 * (fabs(maps[c].mean) + maps[c].spread) &&
				     fabs(moments[g].m2 - (double)squares) <= 1e-11 * (double)squares;
			}
			CHECK(ok, name_of(isa, "moments", pixels, channels));
		}
	}
}

/* Any cut of the pixels gives the same moments; empty bands are neutral. */
static void merging_equals_the_whole(void)
{
	const int64_t pixels = 211, channels = 48, groups = 16;
	struct smalti_moments whole[16], merged[16] = {0}, part[16], none[16] = {0};
	fill(x, pixels * channels, 1e4, 1, 7);
	smalti_kernels()->groupnorm_moments(pixels, channels, groups, x, whole);
	for (int64_t from = 0, band = 1; from < pixels; from += band, band = band * 2 + 1) {
		band = band < pixels - from ? band : pixels - from;
		smalti_kernels()->groupnorm_moments(band, channels, groups, x + from * channels, part);
		smalti_moments_merge(groups, part, merged);
		smalti_moments_merge(groups, none, merged);
	}
	for (int g = 0; g < groups; g++) {
		CU_ASSERT_EQUAL(merged[g].count, whole[g].count);
		CU_ASSERT_DOUBLE_EQUAL(merged[g].mean, whole[g].mean, 1e-9);
		CU_ASSERT_DOUBLE_EQUAL(merged[g].m2, whole[g].m2, 1e-10 * whole[g].m2);
	}
	smalti_kernels()->groupnorm_moments(0, channels, groups, x, part);
	CHECK(!memcmp(part, none, sizeof(part)), "no pixels: no counts");
}

static void groupnorm_agrees_with_double(void)
{
	struct smalti_moments moments[64];
	float a[1024], b[1024];
	for (size_t c = 0; c < COUNT(maps); c++) {
		int64_t pixels = maps[c].pixels, channels = maps[c].channels, groups = maps[c].groups;
		int64_t count = pixels * channels;
		/* y = a·x + b in f32 cancels where the mean is large against the deviations. */
		if (fabs(maps[c].mean) > 10 || count == groups)
			continue;
		fill(x, count, maps[c].mean, maps[c].spread, 8);
		fill(first, channels, 1, 0.5, 9);
		fill(second, channels, 0, 1, 10);
		smalti_kernels()->groupnorm_moments(pixels, channels, groups, x, moments);
		smalti_groupnorm_coefficients(channels, groups, moments, 1e-6, first, second, a, b);
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			for (int silu = 0; silu < 2; silu++) {
				smalti_cpu_kernels((enum smalti_isa)isa)
				    ->groupnorm_apply(pixels, channels, x, a, b, silu, SMALTI_F32, y);
				double worst = 0;
				for (int64_t i = 0; i < count; i++) {
					int64_t channel = i % channels;
					const struct smalti_moments *m =
					    &moments[channel / (channels / groups)];
					double z = ((double)x[i] - m->mean) / sqrt(m->m2 / m->count + 1e-6) *
						       (double)first[channel] +
						   (double)second[channel];
					worst =
					    fmax(worst, fabs((double)y[i] - (silu ? z / (1 + exp(-z)) : z)));
				}
				CHECK(worst < 3e-6,
				      name_of(isa, silu ? "groupnorm, silu" : "groupnorm", pixels, channels));
			}
		}
	}
}

static void not_a_number_goes_through(void)
{
	struct smalti_moments moments[2];
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		const struct smalti_cpu_kernels *kernels = smalti_cpu_kernels((enum smalti_isa)isa);
		fill(x, 72, 0, 1, 11);
		fill(first, 24, 0, 1, 12);
		x[30] = NAN;
		kernels->layernorm_modulate(3, 24, x, 1e-6f, first, first, SMALTI_F32, y);
		CHECK(!isnan(y[0]) && isnan(y[24]) && isnan(y[47]) && !isnan(y[48]), "layernorm");
		kernels->rmsnorm(3, 24, x, 1e-6f, first, SMALTI_F32, y);
		CHECK(!isnan(y[0]) && isnan(y[24]) && isnan(y[47]) && !isnan(y[48]), "rmsnorm");
		x[30] = INFINITY;
		kernels->layernorm_modulate(3, 24, x, 1e-6f, first, first, SMALTI_F32, y);
		CHECK(!isnan(y[0]) && isnan(y[30]) && !isnan(y[48]), "layernorm of infinity");
		kernels->groupnorm_moments(3, 24, 2, x, moments);
		CHECK(!(moments[0].m2 < INFINITY) && moments[1].m2 < INFINITY, "moments");
	}
}

static const struct test tests[] = {
    {"layernorm agrees with double", layernorm_agrees_with_double},
    {"rmsnorm agrees with double", rmsnorm_agrees_with_double},
    {"moments agree with long double", moments_agree_with_long_double},
    {"merging equals the whole", merging_equals_the_whole},
    {"groupnorm agrees with double", groupnorm_agrees_with_double},
    {"NaN goes through", not_a_number_goes_through},
};

TEST_MAIN("norms", tests)
