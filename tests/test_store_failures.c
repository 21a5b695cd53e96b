/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of what failed, and making that anew. */
#include "rows.h"
#include "store_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The items that lack something, and the reasons. */
static void count_failures(int64_t end, int64_t *failures, int64_t *reasons)
{
	*failures = *reasons = 0;
	for (int64_t i = 0; i < end; i++) {
		struct test_row row;
		struct smalti_shard_failure list[2];
		test_row_make(&row, i, false);
		const int count = test_row_failures(&row, list);
		*failures += count > 0;
		*reasons += count;
	}
}

static void failures_are_listed_and_made_anew(void)
{
	enum { ITEMS = 500, SHARD = 30 };
	int64_t failures, reasons, done = 0;
	count_failures(ITEMS, &failures, &reasons);
	CU_ASSERT(reasons > failures && failures > 20);
	root_fresh();
	struct smalti_store *store = store_open();
	const struct smalti_range all = {0, ITEMS};
	struct smalti_range range;
	struct smalti_store_totals totals;
	struct smalti_error error = SMALTI_NO_ERROR;
	char holder[256], *path;
	store_fill(store, ITEMS, SHARD);
	CU_ASSERT_EQUAL(smalti_store_claim(store, &all, 1, &range, &path, holder, &error),
			SMALTI_CLAIM_NONE); /* they have just failed */
	smalti_store_totals(store, &all, &totals);
	CU_ASSERT(totals.items == ITEMS && totals.failures == failures);
	CU_ASSERT_EQUAL(root_lines("failed.jsonl"), reasons);
	smalti_store_close(store);

	store = store_open();
	CU_ASSERT_EQUAL(smalti_store_claim(store, &all, 1, &range, &path, holder, &error),
			SMALTI_CLAIM_TAKEN);
	CHECK(root_has(strrchr(path, '/') + 1), path);
	free(path);
	CU_ASSERT_TRUE(store_make(store, &range, 3, true)); /* less than there was */
	while (smalti_store_claim(store, &all, 1, &range, &path, holder, &error) == SMALTI_CLAIM_TAKEN) {
		CU_ASSERT_FALSE(store_make(store, &range, range.end - range.first, true));
		CU_ASSERT_EQUAL(access(path, F_OK), -1);
		free(path);
		done++;
	}
	CHECK(error.code == SMALTI_OK, error.message);
	CU_ASSERT_EQUAL(root_count("", "-r1.h5"), done);
	smalti_store_totals(store, &all, &totals);
	CU_ASSERT(totals.items == ITEMS && totals.failures > 0 && totals.failures < SHARD);
	CU_ASSERT(root_lines("failed.jsonl") > 0 && root_lines("failed.jsonl") < SHARD);
	smalti_store_close(store);

	store = store_open(); /* the one that was given up */
	CU_ASSERT_EQUAL(smalti_store_claim(store, &all, 1, &range, &path, holder, &error),
			SMALTI_CLAIM_TAKEN);
	free(path);
	CU_ASSERT_FALSE(store_make(store, &range, range.end - range.first, true));
	CU_ASSERT_EQUAL(root_lines("failed.jsonl"), 0);
	smalti_store_close(store);
	store_check_all(ITEMS, true);
	store_check_cleanup();
}

static void the_list_of_failures_is_made_again(void)
{
	root_fresh();
	struct smalti_store *store = store_open();
	store_fill(store, 100, 20);
	smalti_store_close(store);
	size_t length, again;
	char *text = root_get("failed.jsonl", &length);
	for (size_t cut = 0; cut < length; cut += 7) {
		root_put("failed.jsonl", text, cut);
		smalti_store_close(store_open());
		char *made = root_get("failed.jsonl", &again);
		CU_ASSERT(again == length && !memcmp(made, text, length));
		free(made);
	}
	unlink(root_at("failed.jsonl"));
	smalti_store_close(store_open());
	CU_ASSERT(root_has("failed.jsonl"));
	free(text);
}

static const struct test tests[] = {
    {"failures are listed and made anew", failures_are_listed_and_made_anew},
    {"the list of failures is made again", the_list_of_failures_is_made_again},
};

TEST_MAIN("store failures", tests)
