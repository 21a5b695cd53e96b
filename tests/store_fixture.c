/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "rows.h"
#include "store/shards.h"

#include <stdlib.h>
#include <unistd.h>

struct smalti_store *store_open_as(const char *identity, int64_t lease, struct smalti_error *error)
{
	cJSON *object = cJSON_Parse(identity);
	const struct smalti_store_options options = {.identity = object, .lease_seconds = lease};
	struct smalti_store *store = smalti_store_open(root, &options, error);
	cJSON_Delete(object);
	return store;
}

struct smalti_store *store_open(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_store *store = store_open_as("{\"model\":\"a\"}", 0, &error);
	CHECK(store, error.message);
	if (!store)
		abort();
	return store;
}

enum smalti_claim_status store_claim(struct smalti_store *store, int64_t end, int64_t items,
				     struct smalti_range *range, char holder[256])
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_range within = {0, end};
	const enum smalti_claim_status status =
	    smalti_store_claim(store, &within, items, range, NULL, holder, &error);
	CHECK(error.code == SMALTI_OK, error.message);
	return status;
}

bool store_make(struct smalti_store *store, const struct smalti_range *range, int64_t rows, bool whole)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_shard_timing timing = {.began = 1, .ended = 2};
	bool lost = false;
	struct smalti_shard_writer *writer = smalti_store_begin(store, range, &test_rows_schema, &error);
	CHECK(writer, error.message);
	if (!writer)
		return false;
	for (int64_t i = 0; i < rows; i++)
		SUCCEEDS(test_row_append(writer, range->first + i, whole, &error), &error, "append");
	SUCCEEDS(smalti_store_commit(store, range, writer, &timing, &lost, &error), &error, "commit");
	return lost;
}

void store_fill(struct smalti_store *store, int64_t end, int64_t items)
{
	struct smalti_range range;
	char holder[256];
	for (enum smalti_claim_status status;
	     (status = store_claim(store, end, items, &range, holder)) != SMALTI_CLAIM_NONE;) {
		if (status == SMALTI_CLAIM_FAILED)
			break;
		if (status == SMALTI_CLAIM_TAKEN)
			CHECK(!store_make(store, &range, range.end - range.first, false), "kept");
		else
			usleep(2000);
	}
}

void store_check_all(int64_t end, bool whole)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_shards shards = {0};
	SUCCEEDS(smalti_shards_read(&shards, root, &error), &error, "shards");
	SUCCEEDS(smalti_shards_check(&shards, root, &error), &error, "shards");
	int64_t next = 0, wrong = 0;
	for (int64_t i = 0; i < shards.count; i++) {
		const struct smalti_shard_id *id = &shards.entries[i].id;
		CU_ASSERT_EQUAL(id->first, next);
		char *path = smalti_shard_path(root, id, &error);
		struct smalti_shard *shard = smalti_shard_open(path, &error);
		CHECK(shard, error.message);
		for (next = id->first; next < id->end && shard; next++) {
			struct smalti_features_row row;
			struct test_row wanted;
			test_row_make(&wanted, next, whole);
			SUCCEEDS(smalti_shard_row(shard, next, &row, &error), &error, "row");
			wrong += test_row_digest(&test_rows_schema, &row) !=
				 test_row_digest(&test_rows_schema, &wanted.row);
		}
		smalti_shard_close(shard);
		free(path);
	}
	CU_ASSERT_EQUAL(next, end);
	CU_ASSERT_EQUAL(wrong, 0);
	smalti_shards_free(&shards);
}

void store_check_cleanup(void)
{
	CU_ASSERT_EQUAL(root_count("claims", ""), 0);
	CU_ASSERT_EQUAL(root_count("", ".part"), 0);
}
