/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are shards by their names: which of them count, and what is refused. */
#include "base/sealed.h"
#include "store/shards.h"
#include "store_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char middle[] = "shard-000000000010-000000000020.h5";

static void three_commits(void)
{
	root_fresh();
	struct smalti_store *store = store_open();
	store_fill(store, 30, 10);
	smalti_store_close(store);
}

static void copy(const char *from, const char *to)
{
	size_t length;
	char *data = root_get(from, &length);
	root_put(to, data, length);
	free(data);
}

static void the_one_made_last_counts(void)
{
	three_commits();
	copy(middle, "shard-000000000010-000000000020-r2.h5");
	copy(middle, "shard-000000000010-000000000020-r10.h5");
	struct smalti_shards shards = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_shards_read(&shards, root, &error), &error, "read");
	SUCCEEDS(smalti_shards_check(&shards, root, &error), &error, "check");
	CU_ASSERT(shards.count == 3 && shards.entries[1].id.remake == 10);
	SUCCEEDS(smalti_shards_describe(&shards, root, &error), &error, "describe");
	CU_ASSERT(smalti_shards_cover(&shards, 30) && !smalti_shards_cover(&shards, 31));
	/* What is known of a file stays, that of another is not taken for it. */
	unlink(root_at("shard-000000000010-000000000020-r10.h5"));
	SUCCEEDS(smalti_shards_read(&shards, root, &error), &error, "read again");
	CU_ASSERT(shards.count == 3 && shards.entries[1].id.remake == 2 && !shards.entries[1].described &&
		  shards.entries[1].tried && shards.entries[0].described && !shards.entries[0].tried);
	smalti_shards_free(&shards);
	smalti_store_close(store_open()); /* removes the older ones */
	CU_ASSERT(root_has("shard-000000000010-000000000020-r2.h5") && !root_has(middle));
	store_check_all(30, false);
}

static void overlaps_are_refused(void)
{
	static const char *const names[] = {
	    "shard-000000000015-000000000018.h5", "shard-000000000010-000000000011.h5",
	    "shard-000000000005-000000000025.h5", "shard-000000000029-000000000031.h5"};
	for (size_t i = 0; i < COUNT(names); i++) {
		three_commits();
		copy(middle, names[i]);
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(store_open_as("{\"model\":\"a\"}", 0, &error) ? 0 : -1, &error, SMALTI_ECORRUPT,
		      names[i], "shard-", "another shard has", "verify --repair");
		CU_ASSERT_EQUAL(root_count("", ".h5"), 4);
	}
}

/* Nobody knows then what failed in it. */
static void a_shard_that_cannot_be_read_is_named(void)
{
	three_commits();
	root_put(middle, "x", 1);
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(store_open_as("{\"model\":\"a\"}", 0, &error) ? 0 : -1, &error, SMALTI_EFORMAT, "open", middle,
	      "verify --repair");
	CU_ASSERT_EQUAL(root_count("", ".h5"), 3);
}

static void what_is_set_aside_is_made_again(void)
{
	three_commits();
	CU_ASSERT_EQUAL(rename(root_at(middle), root_at("aside")), 0);
	struct smalti_store *store = store_open();
	struct smalti_range range;
	char holder[256];
	CU_ASSERT_EQUAL(store_claim(store, 30, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	CU_ASSERT(range.first == 10 && range.end == 20);
	store_make(store, &range, 10, false);
	smalti_store_close(store);
	store_check_all(30, false);
}

/* A directory of the first layout, which had a journal. */
static void older_directories_are_refused(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	root_fresh();
	smalti_store_close(store_open());
	cJSON *object = cJSON_Parse("{\"format\":\"smalti features\",\"version\":1,\"identity\":{}}");
	SUCCEEDS(smalti_sealed_write(root_at("extract.json"), object, &error), &error, "extract.json");
	cJSON_Delete(object);
	FAILS(store_open_as("{}", 0, &error) ? 0 : -1, &error, SMALTI_EUNSUPPORTED, "open", "extract.json",
	      "\"version\" is 1", "extract the features again");
}

static const struct test tests[] = {
    {"the one made last counts", the_one_made_last_counts},
    {"overlaps are refused", overlaps_are_refused},
    {"a shard that cannot be read is named", a_shard_that_cannot_be_read_is_named},
    {"what is set aside is made again", what_is_set_aside_is_made_again},
    {"older directories are refused", older_directories_are_refused},
};

TEST_MAIN("store shards", tests)
