/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a list, ranges of parts: whoever makes them, every item is made once. */
#include "rows.h"
#include "store_fixture.h"

static void parts_are_the_whole(void)
{
	static const int64_t parts[] = {1, 2, 3, 7, 64, 2000};
	for (size_t p = 0; p < COUNT(parts); p++) {
		const struct smalti_range whole = {17, 17 + 1003};
		int64_t next = whole.first, min = 1003, max = 0;
		for (int64_t i = 0; i < parts[p]; i++) {
			const struct smalti_range part = smalti_range_part(&whole, i, parts[p]);
			const int64_t length = part.end - part.first;
			CU_ASSERT_EQUAL(part.first, next);
			CU_ASSERT_EQUAL(part.first, 17 + i * 1003 / parts[p]);
			next = part.end;
			min = length < min ? length : min;
			max = length > max ? length : max;
		}
		CU_ASSERT_EQUAL(next, whole.end);
		CU_ASSERT(max - min <= 1);
	}
	const struct smalti_range large = {0, INT64_MAX};
	const struct smalti_range last = smalti_range_part(&large, INT64_MAX - 1, INT64_MAX);
	CU_ASSERT(last.first == INT64_MAX - 1 && last.end == INT64_MAX);
}

/* Each part by a store of its own, as an array of processes would; parts without items as well. */
static void uneven_parts_make_every_item_once(void)
{
	static const int64_t parts[] = {1, 3, 7, 64};
	for (size_t p = 0; p < COUNT(parts); p++) {
		root_fresh();
		for (int64_t i = 0; i < parts[p]; i++) {
			struct smalti_store *store = store_open();
			const struct smalti_range whole = {0, 53};
			const struct smalti_range part = smalti_range_part(&whole, i, parts[p]);
			struct smalti_error error = SMALTI_NO_ERROR;
			struct smalti_range range;
			char holder[256];
			while (smalti_store_claim(store, &part, 10, &range, NULL, holder, &error) ==
			       SMALTI_CLAIM_TAKEN) {
				CU_ASSERT_EQUAL(range.first / 10, (range.end - 1) / 10);
				store_make(store, &range, range.end - range.first, false);
			}
			struct smalti_store_totals totals;
			smalti_store_totals(store, &part, &totals);
			CU_ASSERT_EQUAL(totals.items, part.end - part.first);
			smalti_store_close(store);
		}
		store_check_all(53, false);
		store_check_cleanup();
	}
}

static void what_was_done_is_not_done_again(void)
{
	root_fresh();
	for (int64_t end = 0; end <= 40; end += 20) {
		struct smalti_store *store = store_open();
		store_fill(store, end, 7);
		struct smalti_store_totals totals;
		smalti_store_totals(store, &(struct smalti_range){0, 1000}, &totals);
		CU_ASSERT_EQUAL(totals.items, end);
		smalti_store_close(store);
		store_check_all(end, false);
		store_check_cleanup();
	}
	/* [0,7) [7,14) [14,20) [20,21) [21,28) [28,35) [35,40) */
	CU_ASSERT_EQUAL(root_count("", ".h5"), 7);
}

static void ranges_that_cannot_be_are_refused(void)
{
	static const struct {
		struct smalti_range within;
		int64_t items;
	} cases[] = {{{-1, 5}, 1}, {{5, 4}, 1}, {{0, 5}, 0}, {{0, INT64_MAX}, 10}};
	root_fresh();
	struct smalti_store *store = store_open();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_range range;
		char holder[256];
		FAILS(
		    smalti_store_claim(store, &cases[i].within, cases[i].items, &range, NULL, holder, &error),
		    &error, SMALTI_EINVAL, "claim", "items");
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(smalti_store_begin(store, &(struct smalti_range){0, 5}, &test_rows_schema, &error) ? 0 : -1,
	      &error, SMALTI_EINVAL, "not claimed", "0 to 5", "not claimed");
	smalti_store_close(store);
}

static void part_of_a_range_can_be_committed(void)
{
	root_fresh();
	struct smalti_store *store = store_open();
	struct smalti_range range;
	char holder[256];
	store_claim(store, 20, 10, &range, holder);
	CU_ASSERT_FALSE(store_make(store, &range, 4, false));
	store_claim(store, 20, 10, &range, holder);
	CU_ASSERT(range.first == 4 && range.end == 10);
	CU_ASSERT_FALSE(store_make(store, &range, 0, false));
	CU_ASSERT_EQUAL(store_claim(store, 20, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	CU_ASSERT_EQUAL(range.first, 4);
	smalti_store_abandon(store, &range, NULL);
	store_fill(store, 20, 10);
	smalti_store_close(store);
	store_check_all(20, false);
	store_check_cleanup();
}

static const struct test tests[] = {
    {"parts are the whole", parts_are_the_whole},
    {"uneven parts make every item once", uneven_parts_make_every_item_once},
    {"what was done is not done again", what_was_done_is_not_done_again},
    {"ranges that cannot be are refused", ranges_that_cannot_be_are_refused},
    {"part of a range can be committed", part_of_a_range_can_be_committed},
};

TEST_MAIN("store ranges", tests)
