/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "kernels/kernels.h"
#include "kernels/layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };
static const int64_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 127, 1009};
enum { COUNTS = COUNT(counts) };

static const struct smalti_cpu_kernels *kernels_of(int isa)
{
	return smalti_cpu_kernels((enum smalti_isa)isa);
}

static const char *name_of(int isa, const char *what, int64_t count)
{
	static char name[128];
	snprintf(name, sizeof(name), "%s, %s of %lld", smalti_isa_name((enum smalti_isa)isa), what,
		 (long long)count);
	return name;
}

/* Against double: 4 units in the last place, or 2^-149 where x·e^x is subnormal. */
static void silu_is_accurate(void)
{
	static float x[MOST], y[MOST];
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		double worst = 0;
		for (int block = 0; block < 64; block++) {
			for (int i = 0; i < MOST; i++)
				x[i] = -88.f + (float)(block * MOST + i) * (0x1p-18f * 178);
			kernels_of(isa)->silu(MOST, x, SMALTI_F32, y);
			for (int i = 0; i < MOST; i++) {
				double expected = (double)x[i] / (1 + exp(-(double)x[i]));
				double unit = fmax(ldexp(1, ilogb(expected + 1e-300) - 23), 0x1p-149);
				worst = fmax(worst, fabs((double)y[i] - expected) / unit);
			}
		}
		CHECK(worst < 4, name_of(isa, "silu", 64 * MOST));
	}
}

static void silu_has_its_limits(void)
{
	const float x[] = {0, -0.f, INFINITY, 1e30f, -1e30f, -200, NAN};
	float y[7];
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		kernels_of(isa)->silu(7, x, SMALTI_F32, y);
		CHECK(y[0] == 0 && y[1] == 0 && signbit(y[1]), "zeros");
		CHECK(y[2] == INFINITY && y[3] == 1e30f, "large");
		CHECK(y[4] == 0 && y[5] == 0 && isnan(y[6]), "small, NaN");
	}
}

static void tails_are_exact(void)
{
	static float x[MOST], z[MOST], y[MOST];
	static uint16_t half[MOST];
	uint64_t seed = 3;
	for (int i = 0; i < MOST; i++) {
		x[i] = 100 * test_random(&seed);
		z[i] = 100 * test_random(&seed);
	}
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		for (int c = 0; c < COUNTS; c++) {
			int64_t count = counts[c];
			memset(y, 0x5a, sizeof(y));
			memset(half, 0x5a, sizeof(half));
			kernels_of(isa)->add(count, x, z, y);
			kernels_of(isa)->convert(count, SMALTI_F32, x, SMALTI_BF16, half);
			bool ok = half[count] == 0x5a5a && ((unsigned char *)(y + count))[0] == 0x5a;
			for (int64_t i = 0; i < count; i++)
				ok = ok && y[i] == x[i] + z[i] && half[i] == smalti_f32_to_bf16(x[i]);
			CHECK(ok, name_of(isa, "add, convert", count));
		}
	}
	memcpy(y, x, sizeof(y));
	smalti_kernels()->add(1000, y, z, y);
	CHECK(y[0] == x[0] + z[0] && y[999] == x[999] + z[999], "in place");
}

/* All halves both ways, and f32 values around every rounding boundary of theirs. */
static void conversions_match_the_plain_ones(void)
{
	enum { HALVES = 0x10000 };
	uint16_t *halves = malloc(HALVES * 2 + 2), *back = malloc(HALVES * 2);
	float *wide = malloc(HALVES * 4);
	for (int i = 0; i < HALVES; i++)
		halves[i] = (uint16_t)i;
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		for (int d = SMALTI_F16; d <= SMALTI_BF16; d++) {
			enum smalti_dtype dtype = (enum smalti_dtype)d;
			kernels_of(isa)->convert(HALVES, dtype, halves, SMALTI_F32, wide);
			bool same = true;
			for (int i = 0; i < HALVES; i++) {
				float expected;
				smalti_widen(dtype, &halves[i], 1, &expected);
				same = same &&
				       (isnan(expected) ? isnan(wide[i]) : !memcmp(&expected, &wide[i], 4));
			}
			CHECK(same, name_of(isa, smalti_dtype_name(dtype), HALVES));
			for (int nudge = -1; nudge <= 1; nudge++) {
				for (int i = 0; i < HALVES; i++) {
					uint32_t bits = (uint32_t)i << 16 | (uint32_t)(0x8000 + nudge);
					if (dtype == SMALTI_F16) { /* halfway between two f16 numbers */
						float f = smalti_f16_to_f32((uint16_t)i);
						memcpy(&bits, &f, 4);
						bits += (uint32_t)(0x1000 + nudge);
					}
					memcpy(&wide[i], &bits, 4);
				}
				kernels_of(isa)->convert(HALVES, SMALTI_F32, wide, dtype, back);
				same = true;
				for (int i = 0; i < HALVES; i++) {
					uint16_t expected;
					float value;
					smalti_narrow(dtype, &wide[i], 1, &expected);
					smalti_widen(dtype, &back[i], 1, &value);
					same = same && (isnan(wide[i]) ? isnan(value) : expected == back[i]);
				}
				CHECK(same, name_of(isa, smalti_dtype_name(dtype), nudge));
			}
		}
		/* Between the two halves, and from an odd address. */
		char *odd = (char *)halves + 1;
		float f;
		memmove(odd, "\x80\x3f", 2);
		kernels_of(isa)->convert(1, SMALTI_BF16, odd, SMALTI_F32, &f);
		CHECK(f == 1, "odd address");
		kernels_of(isa)->convert(1, SMALTI_BF16, odd, SMALTI_F16, back);
		CHECK(back[0] == 0x3c00, "bf16 to f16");
		halves[0] = 0;
		halves[1] = 1;
	}
	free(halves);
	free(back);
	free(wide);
}

static uint8_t plain_u8(float x)
{
	float value = x * 0.5f;
	value += 0.5f;
	value = !(value > 0) ? 0 : value > 1 ? 1 : value;
	return (uint8_t)rintf(value * 255);
}

static void pixels_round_half_to_even(void)
{
	static float x[MOST];
	static uint8_t y[MOST + 1];
	int count = 0;
	const float special[] = {NAN, -NAN, INFINITY, -INFINITY, 0, -1, 1, 2, -2, 1e30f, -1e-40f};
	for (size_t i = 0; i < COUNT(special); i++)
		x[count++] = special[i];
	for (int level = 0; level < 256; level++) { /* halves of a level, and their neighbours */
		float middle = (float)((level + 0.5) / 255 * 2 - 1);
		x[count++] = middle;
		x[count++] = nextafterf(middle, 2);
		x[count++] = nextafterf(middle, -2);
	}
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		memset(y, 0xaa, sizeof(y));
		kernels_of(isa)->to_u8(count, x, y);
		bool same = y[count] == 0xaa;
		for (int i = 0; i < count; i++)
			same = same && y[i] == plain_u8(x[i]);
		CHECK(same, name_of(isa, "to_u8", count));
	}
	CHECK(y[0] == 0 && y[2] == 255 && y[3] == 0 && y[4] == 128, "NaN, infinities, 127.5");
}

static uint16_t plain_u16(float x)
{
	float value = x * 0.5f + 0.5f;
	value = !(value > 0) ? 0 : value > 1 ? 1 : value;
	return (uint16_t)rintf(value * 65535);
}

static void pixels_of_16_bits(void)
{
	enum { VALUES = 3 * 1009 + 4 };
	static float x[VALUES];
	static uint16_t y[VALUES + 1];
	int count = 0;
	const float special[] = {NAN, INFINITY, -INFINITY, -0.5f};
	for (size_t i = 0; i < COUNT(special); i++)
		x[count++] = special[i];
	for (int i = 0; i < 1009; i++) {
		float middle = (float)((i * 64.9 + 0.5) / 65535 * 2 - 1);
		x[count++] = middle;
		x[count++] = nextafterf(middle, 2);
		x[count++] = nextafterf(middle, -2);
	}
	for (int isa = 0; isa <= (int)smalti_isa(); isa++)
		for (int used = count; used > count - 33; used--) {
			memset(y, 0xaa, sizeof(y));
			kernels_of(isa)->to_u16(used, x, y);
			bool same = y[used] == 0xaaaa;
			for (int i = 0; i < used; i++)
				same = same && y[i] == plain_u16(x[i]);
			CHECK(same, name_of(isa, "to_u16", used));
		}
	smalti_kernels()->to_u16(4, x, y);
	CHECK(y[0] == 0 && y[1] == 65535 && y[2] == 0 && y[3] == 16384, "NaN, infinities, 16383.75");
}

static void bytes_to_pixels(void)
{
	unsigned char x[256], back[256];
	float y[256];
	for (int i = 0; i < 256; i++)
		x[i] = (unsigned char)i;
	smalti_from_u8(256, x, y);
	for (int i = 0; i < 256; i++)
		CHECK(y[i] == (float)i / 127.5f - 1.f, "from_u8");
	smalti_kernels()->to_u8(256, y, back);
	CHECK(y[0] == -1 && y[255] == 1 && !memcmp(x, back, sizeof(x)), "there and back");
}

static void upsampling_doubles_pixels(void)
{
	const uint16_t x[] = {1, 2, 3, 4, 5, 6};
	const uint16_t expected[] = {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6};
	uint16_t y[12];
	smalti_upsample_row(2, 3, SMALTI_BF16, x, y);
	CHECK(!memcmp(y, expected, sizeof(y)), "bf16");
	const float wide[] = {1, 2};
	float twice[4];
	smalti_upsample_row(2, 1, SMALTI_F32, wide, twice);
	CHECK(twice[0] == 1 && twice[1] == 1 && twice[2] == 2 && twice[3] == 2, "f32");
}

static const struct test tests[] = {
    {"silu is accurate", silu_is_accurate},
    {"silu has its limits", silu_has_its_limits},
    {"tails are exact", tails_are_exact},
    {"conversions match the plain ones", conversions_match_the_plain_ones},
    {"pixels round half to even", pixels_round_half_to_even},
    {"pixels of 16 bits", pixels_of_16_bits},
    {"bytes to pixels", bytes_to_pixels},
    {"upsampling doubles pixels", upsampling_doubles_pixels},
};

TEST_MAIN("elementwise", tests)
