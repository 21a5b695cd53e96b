/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/dtype.h"
#include "harness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static void first_cause_is_kept(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(smalti_fail(&error, SMALTI_EINVAL, "size %d", 3), &error, SMALTI_EINVAL, "first", "size 3");
	FAILS(smalti_fail(&error, SMALTI_EIO, "later"), &error, SMALTI_EINVAL, "second", "size 3");
	smalti_error_prefix(&error, "file.json");
	CU_ASSERT_STRING_EQUAL(error.message, "file.json: size 3");
}

static void control_characters_cannot_break_the_line(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_fail(&error, SMALTI_EINVAL, "a\nb\033[31m");
	CU_ASSERT_STRING_EQUAL(error.message, "a?b?[31m");
}

static void system_errors_say_why(void)
{
	static const struct {
		int cause;
		enum smalti_code code;
		bool of_input;
		const char *words;
	} cases[] = {
	    {ENOSPC, SMALTI_EIO, false, "No space"},
	    {EIO, SMALTI_EIO, false, "Input/output"},
	    {EMFILE, SMALTI_EIO, false, "Too many"},
	    {ENFILE, SMALTI_EIO, false, "Too many"},
	    {ESTALE, SMALTI_EIO, false, "Stale"},
	    {EACCES, SMALTI_EIO, false, "denied"},
	    {ENOMEM, SMALTI_ENOMEM, false, "memory"},
	    {ENOENT, SMALTI_ENOENT, true, "No such file"},
	    {ENOTDIR, SMALTI_ENOENT, true, "Not a"},
	    {ELOOP, SMALTI_ENOENT, true, "symbolic links"},
	    {ENAMETOOLONG, SMALTI_ENOENT, true, "too long"},
	    {ENXIO, SMALTI_ENOENT, true, "No such device"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		errno = cases[i].cause;
		FAILS(smalti_fail_errno(&error, "x.png"), &error, cases[i].code, cases[i].words, "x.png",
		      cases[i].words);
		CHECK(smalti_is_of_input(error.code) == cases[i].of_input, cases[i].words);
	}
	CU_ASSERT_FALSE(smalti_is_of_input(SMALTI_OK));
	CU_ASSERT_FALSE(smalti_is_of_input(SMALTI_ECANCELLED));
	CU_ASSERT_TRUE(smalti_is_of_input(SMALTI_ECORRUPT));
}

static void allocation_checks_the_product(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	CU_ASSERT_PTR_NULL(smalti_calloc(INT64_MAX / 2, 3, &error));
	CU_ASSERT_EQUAL(error.code, SMALTI_ENOMEM);
	struct smalti_error negative = SMALTI_NO_ERROR;
	CU_ASSERT_PTR_NULL(smalti_aligned_alloc(-1, 4, &negative));
	CU_ASSERT_EQUAL(negative.code, SMALTI_ENOMEM);
	struct smalti_error fine = SMALTI_NO_ERROR;
	void *memory = smalti_aligned_alloc(0, 4, &fine);
	CU_ASSERT_PTR_NOT_NULL(memory);
	CU_ASSERT_EQUAL((uintptr_t)memory % 64, 0);
	free(memory);
}

/* Every f16 value survives the way to f32 and back; rounding is to nearest even. */
static void half_floats_round_to_nearest_even(void)
{
	for (uint32_t half = 0; half < 0x10000; half++) {
		float wide = smalti_f16_to_f32((uint16_t)half);
		if (!isnan(wide) && smalti_f32_to_f16(wide) != half)
			CU_FAIL("an f16 value did not survive");
	}
	static const struct {
		float value;
		uint16_t f16, bf16;
	} cases[] = {
	    {65504.f, 0x7bff, 0x4780},        {65519.f, 0x7bff, 0x4780},        {65520.f, 0x7c00, 0x4780},
	    {0x1p-24f, 0x0001, 0x3380},       {0x1p-25f, 0x0000, 0x3300},       {0x1.8p-24f, 0x0002, 0x33c0},
	    {1.f + 0x1p-11f, 0x3c00, 0x3f80}, {1.f + 0x3p-11f, 0x3c02, 0x3f80}, {-INFINITY, 0xfc00, 0xff80},
	    {1.f + 0x1p-8f, 0x3c04, 0x3f80},  {1.f + 0x3p-8f, 0x3c0c, 0x3f82},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		CU_ASSERT_EQUAL(smalti_f32_to_f16(cases[i].value), cases[i].f16);
		CU_ASSERT_EQUAL(smalti_f32_to_bf16(cases[i].value), cases[i].bf16);
	}
	CU_ASSERT_TRUE(isnan(smalti_f16_to_f32(smalti_f32_to_f16(NAN))));
	CU_ASSERT_TRUE(isnan(smalti_bf16_to_f32(smalti_f32_to_bf16(NAN))));
}

static const struct test tests[] = {
    {"first cause is kept", first_cause_is_kept},
    {"control characters cannot break the line", control_characters_cannot_break_the_line},
    {"system errors say why", system_errors_say_why},
    {"allocation checks the product", allocation_checks_the_product},
    {"half floats round to nearest even", half_floats_round_to_nearest_even},
};

TEST_MAIN("error, alloc, dtype", tests)
