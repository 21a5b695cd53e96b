/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/rate.h"
#include "harness.h"

/* Bytes that are added at a moment, and when they will have passed. */
struct step {
	double now;
	int64_t bytes;
	double passed;
};

static void bytes_pass_one_behind_the_other(void)
{
	static const struct step steps[] = {
	    {10, 100, 11},      /* one second of bytes takes one */
	    {10, 50, 11.5},     /* behind those */
	    {11.25, 25, 11.75}, /* while they pass */
	    {20, 0, 20},        /* what was not used is not kept in stock */
	    {20, 300, 23},      {22, 100, 24},
	};
	struct smalti_rate rate;
	int64_t sum = 0;
	smalti_rate_open(&rate, 100);
	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		const double passed = smalti_rate_add_at(&rate, steps[i].bytes, steps[i].now);
		CHECK(passed == steps[i].passed, "when they have passed");
		sum += steps[i].bytes;
	}
	CHECK(smalti_rate_bytes(&rate) == sum, "all are counted");
	smalti_rate_close(&rate);
}

static void waits_no_less_than_bytes_take(void)
{
	struct smalti_rate rate;
	smalti_rate_open(&rate, 1000);
	const double began = smalti_now();
	smalti_rate_add(&rate, 150);
	smalti_rate_await(&rate);
	CHECK(smalti_now() - began >= 0.15, "it went too fast");
	smalti_rate_close(&rate);
}

static void nobody_waits_without_a_limit_or_when_it_is_lifted(void)
{
	for (int64_t limit = 0; limit < 2; limit++) {
		struct smalti_rate rate;
		smalti_rate_open(&rate, limit);
		smalti_rate_add(&rate, INT64_C(1) << 40); /* 30,000 years */
		if (limit)
			smalti_rate_lift(&rate);
		smalti_rate_await(&rate);
		smalti_rate_close(&rate);
	}
	smalti_rate_add(NULL, 1);
}

static const struct test tests[] = {
    {"bytes pass one behind the other", bytes_pass_one_behind_the_other},
    {"waits no less than bytes take", waits_no_less_than_bytes_take},
    {"nobody waits without a limit, or when it is lifted", nobody_waits_without_a_limit_or_when_it_is_lifted},
};

TEST_MAIN("rate", tests)
