/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "harness.h"
#include "samplers/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE = 4 * 128 * 128, MANY = 65541 };

static float *drawn(uint64_t seed, enum smalti_dtype dtype, int64_t count)
{
	struct smalti_generator generator;
	smalti_generator_seed(&generator, seed);
	float *out = smalti_aligned_alloc(count, sizeof(float), NULL);
	if (!out)
		abort();
	smalti_randn(&generator, dtype, count, out);
	return out;
}

/* The 10000th number of the default seed is given by the C++ standard. */
static void twister_is_the_standard_one(void)
{
	struct smalti_mt19937 mt;
	smalti_mt19937_seed(&mt, 5489);
	uint32_t value = 0;
	for (int i = 0; i < 10000; i++)
		value = smalti_mt19937_next(&mt);
	CU_ASSERT_EQUAL(value, UINT32_C(4123659995));

	static const uint32_t uniform[] = {8325804, 12888623, 1484405, 2215104};
	smalti_mt19937_seed(&mt, 0);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(smalti_mt19937_next(&mt) & 0xffffff, uniform[i]);
}

/* Values printed by torch; to 7 decimals. */
static void torch_prints_these(void)
{
	static const struct {
		const char *what;
		uint64_t seed;
		enum smalti_dtype dtype;
		int64_t count, from;
		double tolerance;
		int values;
		double value[20];
	} cases[] = {
	    {"f32 seed 0",
	     0,
	     SMALTI_F32,
	     IMAGE,
	     0,
	     0.51e-7,
	     8,
	     {-1.1258398, -1.1523602, -0.2505786, -0.4338788, 0.8487104, 0.6920092, -0.3160128, -2.1152194}},
	    {"f32 seed 0 end",
	     0,
	     SMALTI_F32,
	     IMAGE,
	     IMAGE - 4,
	     0.51e-7,
	     4,
	     {0.9063947, 0.1389358, 0.2618549, -1.4578041}},
	    {"f32 seed 42",
	     42,
	     SMALTI_F32,
	     IMAGE,
	     0,
	     0.51e-7,
	     8,
	     {1.9269153, 1.4872841, 0.9007172, -2.1055210, 0.6784185, -1.2345449, -0.0430675, -1.6046669}},
	    {"f32 seed 42 + 2^32", 42 + (UINT64_C(1) << 32), SMALTI_F32, IMAGE, 0, 0.51e-7, 1, {1.9269153}},
	    {"f32 ragged", 0, SMALTI_F32, 20, 0, 0.51e-7, 20, {-1.1258398, -1.1523602, -0.2505786,
							       -0.4338788, 0.5988395,  -1.5550951,
							       -0.3413604, 1.8530061,  0.4680964,
							       -0.1577124, 1.4436601,  0.2660494,
							       1.3893661,  1.5863342,  0.9462984,
							       -0.8436767, 0.9318266,  1.2590092,
							       2.0049806,  0.0537369}},
	    {"f16 seed 0",
	     0,
	     SMALTI_F16,
	     IMAGE,
	     0,
	     0.51e-7,
	     8,
	     {-0.90136719, 0.48144531, 1.1982422, 0.90625, 0.79980469, -0.25488281, -1.8876953, -0.18334961}},
	    {"bf16 seed 0",
	     0,
	     SMALTI_BF16,
	     IMAGE,
	     0,
	     0.51e-7,
	     8,
	     {1.4609375, 0.29101562, 0.9609375, 1.5703125, 0.49414062, -1.515625, -0.25, 0.57421875}},
	    {"f32 fewer than 16",
	     0,
	     SMALTI_F32,
	     6,
	     0,
	     0.51e-4,
	     6,
	     {1.5410, -0.2934, -2.1788, 0.5684, -1.0845, -1.3986}},
	    {"f32 one", 0, SMALTI_F32, 1, 0, 0.51e-4, 1, {1.5410}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		float *out = drawn(cases[i].seed, cases[i].dtype, cases[i].count);
		for (int k = 0; k < cases[i].values; k++) {
			double found = out[cases[i].from + k];
			CHECK(fabs(found - cases[i].value[k]) <= cases[i].tolerance, cases[i].what);
		}
		free(out);
	}
}

static void moments_are_those_of_torch(void)
{
	float *out = drawn(0, SMALTI_F32, IMAGE);
	double sum = 0, squares = 0;
	for (int k = 0; k < IMAGE; k++)
		sum += out[k];
	double mean = sum / IMAGE;
	for (int k = 0; k < IMAGE; k++)
		squares += (out[k] - mean) * (out[k] - mean);
	CU_ASSERT_DOUBLE_EQUAL(mean, -0.00372180, 1e-8);
	CU_ASSERT_DOUBLE_EQUAL(sqrt(squares / (IMAGE - 1)), 0.99874771, 1e-8);
	free(out);
}

/* The bits must not depend on the machine or the compiler. */
static void bits_are_pinned(void)
{
	static const struct {
		enum smalti_dtype dtype;
		uint64_t hash;
	} cases[] = {{SMALTI_F32, UINT64_C(0xfad826eaf9d13e28)},
		     {SMALTI_F16, UINT64_C(0x1600e944404d694f)},
		     {SMALTI_BF16, UINT64_C(0x9c53239b9b19e94f)}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		float *out = drawn(1234, cases[i].dtype, MANY);
		uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a over words */
		for (int k = 0; k < MANY; k++) {
			uint32_t bits;
			memcpy(&bits, &out[k], sizeof(bits));
			hash = (hash ^ bits) * UINT64_C(0x100000001b3);
		}
		CHECK(hash == cases[i].hash, smalti_dtype_name(cases[i].dtype));
		free(out);
	}
}

static void values_are_exact_in_their_dtype(void)
{
	static const struct {
		enum smalti_dtype dtype;
		double largest;
	} cases[] = {{SMALTI_F16, 3.91}, {SMALTI_BF16, 3.34}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		float *out = drawn(7, cases[i].dtype, MANY);
		uint16_t *narrow = smalti_aligned_alloc(MANY, sizeof(*narrow), NULL);
		float *wide = smalti_aligned_alloc(MANY, sizeof(*wide), NULL);
		smalti_narrow(cases[i].dtype, out, MANY, narrow);
		smalti_widen(cases[i].dtype, narrow, MANY, wide);
		CHECK(memcmp(out, wide, MANY * sizeof(float)) == 0, smalti_dtype_name(cases[i].dtype));
		CHECK(test_max_abs(out, MANY) <= cases[i].largest, smalti_dtype_name(cases[i].dtype));
		free(wide);
		free(narrow);
		free(out);
	}
}

/* Whole blocks continue the stream; the second value of a pair waits for the next small draw, also
 * across a copy of the generator. */
static void streams_continue(void)
{
	float *whole = drawn(3, SMALTI_F32, 64), *six = drawn(3, SMALTI_F32, 6);
	float parts[64], ones[6];
	struct smalti_generator first, second;
	smalti_generator_seed(&first, 3);
	smalti_randn(&first, SMALTI_F32, 32, parts);
	second = first;
	smalti_randn(&second, SMALTI_F32, 32, parts + 32);
	CU_ASSERT_EQUAL(memcmp(whole, parts, sizeof(parts)), 0);

	smalti_generator_seed(&first, 3);
	smalti_randn(&first, SMALTI_F32, 3, ones);
	second = first;
	smalti_randn(&second, SMALTI_F32, 0, NULL);
	smalti_randn(&second, SMALTI_F32, 1, ones + 3);
	smalti_randn(&second, SMALTI_F32, 2, ones + 4);
	CU_ASSERT_EQUAL(memcmp(six, ones, sizeof(ones)), 0);
	free(whole);
	free(six);
}

static const struct test tests[] = {
    {"twister is the standard one", twister_is_the_standard_one},
    {"torch prints these", torch_prints_these},
    {"moments are those of torch", moments_are_those_of_torch},
    {"bits are pinned", bits_are_pinned},
    {"values are exact in their dtype", values_are_exact_in_their_dtype},
    {"streams continue", streams_continue},
};

TEST_MAIN("noise", tests)
