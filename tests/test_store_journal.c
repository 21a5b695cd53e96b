/* SPDX-License-Identifier: Apache-2.0
 *
 * A journal that was torn, damaged, lost or taken back. */
#include "store/journal.h"
#include "store_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void three_commits(void)
{
	root_fresh();
	struct smalti_store *store = store_open();
	store_fill(store, 30, 10);
	smalti_store_close(store);
}

/* The last line up to any byte is as if it had never been, but for the whole of it. */
static void a_torn_line_was_never_there(void)
{
	three_commits();
	size_t length;
	char *text = root_get("journal", &length);
	size_t last = length - 1;
	while (text[last - 1] != '\n')
		last--;
	for (size_t cut = last; cut < length; cut += 13) {
		for (int zeros = 0; zeros < 2; zeros++) {
			char *torn = calloc(1, length);
			memcpy(torn, text, cut);
			torn[length - 1] = '\n';
			root_put("journal", torn, zeros ? length : cut);
			free(torn);
			struct smalti_store *store = store_open();
			struct smalti_store_totals totals;
			smalti_store_totals(store, &(struct smalti_range){0, 30}, &totals);
			CU_ASSERT_EQUAL(totals.items, 20);
			store_fill(store, 30, 10);
			smalti_store_close(store);
			store_check_all(30, false);
			CU_ASSERT_EQUAL(root_lines("journal"), 3);
		}
	}
	free(text);
}

static void a_damaged_line_is_named(void)
{
	three_commits();
	size_t length;
	char *text = root_get("journal", &length);
	const size_t first = strcspn(text, "\n") + 1;
	for (size_t i = 0; i < first; i++) {
		text[i] ^= 4;
		root_put("journal", text, length);
		text[i] ^= 4;
		struct smalti_journal journal = {0};
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_journal_read(&journal, root, NULL, &error), &error, SMALTI_ECORRUPT, "damaged",
		      "journal: line 1:", "verify --repair");
	}
	text[first + 3] ^= 1;
	root_put("journal", text, length);
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(store_open_as("{\"model\":\"a\"}", 0, &error) ? 0 : -1, &error, SMALTI_ECORRUPT, "open",
	      "line 2");
	CU_ASSERT_EQUAL(root_count("", ".h5"), 3);
	unlink(root_at("journal"));
	struct smalti_error absent = SMALTI_NO_ERROR;
	FAILS(store_open_as("{\"model\":\"a\"}", 0, &absent) ? 0 : -1, &absent, SMALTI_ENOENT, "open",
	      "journal");
	CU_ASSERT_EQUAL(root_count("", ".h5"), 3);
	free(text);
}

static void overlaps_are_refused(void)
{
	three_commits();
	struct smalti_journal journal = {0};
	struct smalti_error error = SMALTI_NO_ERROR, overlap = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_journal_read(&journal, root, NULL, &error), &error, "read");
	struct smalti_journal_entry entry = journal.entries[1];
	entry.id = (struct smalti_shard_id){15, 18, 0};
	SUCCEEDS(smalti_journal_append(&journal, root, &entry, NULL, &error), &error, "append");
	smalti_journal_free(&journal);
	FAILS(smalti_journal_read(&journal, root, NULL, &overlap), &overlap, SMALTI_ECORRUPT, "overlap",
	      "line 4", "shard-000000000010-000000000020.h5", "overlap");
}

/* A line that takes a shard back leaves its items to be made again. */
static void what_is_dropped_is_made_again(void)
{
	three_commits();
	struct smalti_journal journal = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_journal_read(&journal, root, NULL, &error), &error, "read");
	struct smalti_journal_entry entry = journal.entries[1];
	entry.drop = true;
	SUCCEEDS(smalti_journal_append(&journal, root, &entry, "a test", &error), &error, "drop");
	CU_ASSERT_EQUAL(journal.count, 2);
	smalti_journal_free(&journal);
	struct smalti_store *store = store_open();
	CU_ASSERT_FALSE(root_has("shard-000000000010-000000000020.h5"));
	struct smalti_range range;
	char holder[256];
	CU_ASSERT_EQUAL(store_claim(store, 30, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	CU_ASSERT(range.first == 10 && range.end == 20);
	store_make(store, &range, 10, false);
	smalti_store_close(store);
	store_check_all(30, false);
}

static const struct test tests[] = {
    {"a torn line was never there", a_torn_line_was_never_there},
    {"a damaged line is named", a_damaged_line_is_named},
    {"overlaps are refused", overlaps_are_refused},
    {"what is dropped is made again", what_is_dropped_is_made_again},
};

TEST_MAIN("store journal", tests)
