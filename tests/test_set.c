/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of hashes: what was added is there, once, however many and however alike. */
#include "base/set.h"
#include "harness.h"

enum { MANY = 5000 };

/* Hashes that meet in the slots of a small table: multiples of large powers of two, 0 among them. */
static void every_hash_once(void)
{
	static const uint64_t steps[] = {1, 64, 1 << 20, (uint64_t)1 << 51, 0x9e3779b97f4a7c15};
	for (size_t s = 0; s < COUNT(steps); s++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_set set = {0};
		int added = 0, again = 0;
		for (uint64_t i = 0; i < MANY; i++)
			added += smalti_set_add(&set, (i + (s < 4)) * steps[s], &error) == 1;
		for (uint64_t i = 0; i < MANY; i++)
			again += smalti_set_add(&set, (i + (s < 4)) * steps[s], &error) == 0;
		CHECK(added == MANY, "all are new");
		CHECK(again == MANY, "none is new");
		CHECK(set.count == MANY, "count");
		CHECK(smalti_set_has(&set, 5 * steps[s]) && !smalti_set_has(&set, ~steps[s]), "found");
		smalti_set_free(&set);
		CHECK(!smalti_set_has(&set, 5 * steps[s]), "found in none");
		CHECK(set.count == 0 && smalti_set_add(&set, 7, &error) == 1, "empty after it was freed");
		smalti_set_free(&set);
	}
}

static const struct test tests[] = {
    {"every hash once", every_hash_once},
};

TEST_MAIN("set", tests)
