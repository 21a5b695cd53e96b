/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done to a finished directory of features is found, named and put right. */
#include "base/file.h"
#include "base/sealed.h"
#include "harness.h"
#include "root.h"
#include "rows.h"
#include "smalti/verify.h"
#include "store/shards.h"
#include "store/store.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ITEMS = 60, SHARD = 20, FILES = 16, PLACES = 100 };

/* All files of the directory as they were. */
static struct kept {
	char name[256];
	char *data;
	size_t size;
} kept[FILES];
static int kept_count;

static struct smalti_store *open_store(struct smalti_error *error)
{
	cJSON *identity = cJSON_Parse("{\"list\":{\"items\":60}}");
	const struct smalti_store_options options = {.identity = identity};
	struct smalti_store *store = smalti_store_open(root, &options, error);
	cJSON_Delete(identity);
	return store;
}

/* Makes what is missing of the first items of the directory. */
static void make_rows(int64_t items, const struct smalti_shard_schema *schema)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_shard_timing timing = {.began = 1, .ended = 2};
	const struct smalti_range all = {0, items};
	struct smalti_range range;
	char holder[256];
	bool lost;
	struct smalti_store *store = open_store(&error);
	while (store &&
	       smalti_store_claim(store, &all, SHARD, &range, NULL, holder, &error) == SMALTI_CLAIM_TAKEN) {
		struct smalti_shard_writer *writer = smalti_store_begin(store, &range, schema, &error);
		for (int64_t i = range.first; i < range.end && writer; i++)
			SUCCEEDS(test_row_append(writer, i, false, &error), &error, "append");
		SUCCEEDS(smalti_store_commit(store, &range, writer, &timing, &lost, &error), &error,
			 "commit");
	}
	if (store && items == ITEMS)
		SUCCEEDS(smalti_store_complete(store, items, &error), &error, "complete");
	smalti_store_close(store);
	CHECK(error.code == SMALTI_OK, error.message);
}

static void keep(void)
{
	kept_count = 0;
	DIR *entries = opendir(root);
	for (const struct dirent *entry; (entry = readdir(entries));) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct stat info;
		if (stat(root_at(entry->d_name), &info) || !S_ISREG(info.st_mode) || info.st_size == 0)
			continue;
		struct kept *file = &kept[kept_count++];
		snprintf(file->name, sizeof(file->name), "%s", entry->d_name);
		file->data = smalti_file_read(root_at(entry->d_name), 1 << 26, &file->size, &error);
	}
	closedir(entries);
}

static void restore(void)
{
	for (int i = 0; i < kept_count; i++)
		root_put(kept[i].name, kept[i].data, kept[i].size);
}

static void forget(void)
{
	for (int i = 0; i < kept_count; i++)
		free(kept[i].data);
	kept_count = 0;
}

/* What was found: that of one kind, file and row is looked for. */
struct wanted {
	const char *kind, *file; /* NULL: any */
	int64_t row;             /* -2: any */
	int found;
	char last[SMALTI_ERROR_LENGTH];
};

static void on_problem(void *user, const struct smalti_problem *problem)
{
	struct wanted *wanted = user;
	snprintf(wanted->last, sizeof(wanted->last), "%s", problem->text);
	wanted->found += (!wanted->kind || !strcmp(wanted->kind, problem->kind)) &&
			 (!wanted->file || !strcmp(wanted->file, problem->file)) &&
			 (wanted->row == -2 || wanted->row == problem->row) &&
			 !strncmp(problem->text, problem->file, strlen(problem->file));
}

static struct smalti_verify_result verify(bool repair, struct wanted *wanted)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_verify_result result;
	const struct smalti_verify_options options = {
	    .repair = repair, .user = wanted, .problem = on_problem};
	SUCCEEDS(smalti_verify(root, &options, &result, &error), &error, "verify");
	return result;
}

static void expect_well(const char *what)
{
	struct wanted any = {.row = -2};
	const struct smalti_verify_result result = verify(false, &any);
	CHECK(result.problems == 0, any.last);
	CHECK(result.rows == ITEMS && result.shards == ITEMS / SHARD, what);
}

static void what_is_whole_is_well(void)
{
	root_fresh();
	make_rows(ITEMS, &test_rows_schema);
	expect_well("finished");
	root_put("notes.txt", "mine", 4);
	CU_ASSERT_EQUAL(rmdir(root_at("claims")), 0); /* as copies do that leave empty directories out */
	expect_well("with a note, without claims");
	make_rows(ITEMS, &test_rows_schema);
	expect_well("resumed");
}

/* The row that a byte of a shard is in, by looking for the values of all rows; -1: none. */
static int64_t row_of(const struct kept *file, size_t place)
{
	struct smalti_shard_id id;
	if (!smalti_shard_name_parse(file->name, &id))
		return -1;
	for (int64_t i = id.first; i < id.end; i++) {
		struct test_row row;
		test_row_make(&row, i, false);
		const struct smalti_features_text *text = &row.row.texts[0];
		const struct smalti_features_image *image = &row.row.image;
		const struct {
			const void *data;
			size_t size;
		} values[] = {
		    {row.key, strlen(row.key)},
		    {row.ids, (size_t)text->tokens * sizeof(*row.ids)},
		    {row.text, (size_t)text->tokens * TEST_WIDTH * 2},
		    {row.image, (size_t)(2 * TEST_CHANNELS * image->latent_height * image->latent_width) * 2},
		};
		for (size_t v = 0; v < COUNT(values); v++) {
			const char *found = values[v].size >= 8 ? memmem(file->data, file->size,
									 values[v].data, values[v].size)
								: NULL;
			if (found && place >= (size_t)(found - file->data) &&
			    place < (size_t)(found - file->data) + values[v].size)
				return i;
		}
	}
	return -1;
}

/* Every row that can still be read is the right one. */
static void read_all(int64_t damaged)
{
	struct smalti_error opening = SMALTI_NO_ERROR;
	struct smalti_features *features = smalti_features_open(root, NULL, &opening);
	if (!features)
		return;
	for (int64_t i = 0; i < ITEMS; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_features_row row;
		struct test_row wanted;
		test_row_make(&wanted, i, false);
		if (smalti_features_get(features, i, &row, &error))
			continue;
		CHECK(i != damaged, "a damaged row was read");
		CHECK(test_row_digest(&test_rows_schema, &row) ==
			  test_row_digest(&test_rows_schema, &wanted.row),
		      "a wrong row was read");
	}
	smalti_features_close(features);
}

static void any_byte_that_is_changed_is_named(void)
{
	root_fresh();
	make_rows(ITEMS, &test_rows_schema);
	keep();
	CU_ASSERT(kept_count >= ITEMS / SHARD + 4);
	uint64_t state = 12345;
	int in_rows = 0;
	for (int n = 0; n < PLACES; n++) {
		/* two thirds in shards, the rest in the other files */
		struct kept *file;
		struct smalti_shard_id id;
		do {
			file = &kept[(int)((test_random(&state) + 1) / 2 * (float)kept_count) % kept_count];
		} while (n % 3 != 0 && !smalti_shard_name_parse(file->name, &id));
		const size_t place = (size_t)((test_random(&state) + 1) / 2 * (float)file->size) % file->size;
		const int64_t row = row_of(file, place);
		in_rows += row >= 0;
		char what[320];
		snprintf(what, sizeof(what), "%s, byte %zu, row %lld", file->name, place, (long long)row);
		file->data[place] ^= (char)(1 + (n * 37) % 255);
		root_put(file->name, file->data, file->size);
		struct wanted wanted = {.file = file->name, .row = row >= 0 ? row : -2};
		verify(false, &wanted);
		CHECK(wanted.found > 0, what);
		read_all(row);
		if (n % 7 == 0) {
			const struct smalti_verify_result result = verify(true, &wanted);
			CHECK(result.left == 0, what);
			make_rows(ITEMS, &test_rows_schema);
			expect_well(what);
			DIR *entries = opendir(root);
			for (const struct dirent *entry; (entry = readdir(entries));)
				if (strstr(entry->d_name, ".broken"))
					unlink(root_at(entry->d_name));
			closedir(entries);
			forget();
			keep();
		} else {
			file->data[place] ^= (char)(1 + (n * 37) % 255);
			restore();
		}
	}
	CU_ASSERT(in_rows > PLACES / 4);
	expect_well("restored");
	forget();
}

static const char first[] = "shard-000000000000-000000000020.h5",
		  second[] = "shard-000000000020-000000000040.h5";

static void lose_a_shard(void)
{
	unlink(root_at(first));
}

static void overlap(void)
{
	CU_ASSERT_EQUAL(link(root_at(second), root_at("shard-000000000030-000000000050.h5")), 0);
}

static void lose_the_end_and_a_shard(void)
{
	unlink(root_at("manifest.json"));
	unlink(root_at("features.h5"));
	unlink(root_at(second));
}

static void put_another_in_its_place(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_shard_timing timing = {.began = 1, .ended = 2};
	struct smalti_shard_writer *writer =
	    smalti_shard_create(root_at(first), &test_rows_schema, 0, SHARD, &error);
	for (int64_t i = 0; i < SHARD; i++)
		SUCCEEDS(test_row_append(writer, i, true, &error), &error, "append");
	smalti_shard_close(smalti_shard_finish(writer, &timing, &error));
	CHECK(error.code == SMALTI_OK, error.message);
}

static void leave_a_part(void)
{
	root_put(".shard-000000000020-000000000040.h5.0123456789abcdef.part", "x", 1);
}

static void leave_a_shard(void)
{
	root_put("shard-000000000060-000000000080.h5", "x", 1);
}

static void exchange_shards(void)
{
	rename(root_at(first), root_at("other"));
	rename(root_at(second), root_at(first));
	rename(root_at("other"), root_at(second));
}

static void lose_the_list_of_failures(void)
{
	unlink(root_at("failed.jsonl"));
}

static void lose_the_manifest(void)
{
	unlink(root_at("manifest.json"));
	unlink(root_at("features.h5"));
	root_put("failed.jsonl", "{}\n", 3);
}

static void lose_the_end(void)
{
	unlink(root_at("manifest.json"));
	unlink(root_at("features.h5"));
}

static void damage_what_it_is_of(void)
{
	root_put("extract.json", "{}", 2);
}

static void every_damage_has_its_name(void)
{
	static const struct {
		void (*damage)(void);
		const char *kind, *file;
		int64_t dropped;
	} cases[] = {
	    {lose_a_shard, "missing", first, SHARD},
	    {lose_a_shard, "gap", "extract.json", SHARD},
	    {lose_a_shard, "different", "manifest.json", SHARD},
	    {lose_the_end_and_a_shard, "gap", "extract.json", 0},
	    {overlap, "overlap", "shard-000000000030-000000000050.h5", 0},
	    {leave_a_part, "stray", ".shard-000000000020-000000000040.h5.0123456789abcdef.part", 0},
	    {leave_a_shard, "damaged", "shard-000000000060-000000000080.h5", SHARD},
	    {exchange_shards, "damaged", first, 2 * SHARD},
	    {put_another_in_its_place, "different", "manifest.json", 0},
	    {lose_the_list_of_failures, "missing", "failed.jsonl", 0},
	    {lose_the_manifest, "different", "failed.jsonl", 0},
	    {lose_the_end, "unfinished", "manifest.json", 0},
	    {damage_what_it_is_of, "damaged", "extract.json", 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char what[128];
		snprintf(what, sizeof(what), "case %zu: %s %s", i, cases[i].kind, cases[i].file);
		root_fresh();
		make_rows(ITEMS, &test_rows_schema);
		cases[i].damage();
		struct wanted wanted = {.kind = cases[i].kind, .file = cases[i].file, .row = -1};
		verify(false, &wanted);
		CHECK(wanted.found > 0, what);
		const struct smalti_verify_result result = verify(true, &wanted);
		CHECK(result.dropped == cases[i].dropped, what);
		CHECK(result.left == 0, what);
		if (!root_has("manifest.json")) /* else all was there to make it whole */
			make_rows(ITEMS, &test_rows_schema);
		expect_well(what);
	}
}

static void what_cannot_be_repaired_is_left(void)
{
	root_fresh();
	make_rows(ITEMS - 1, &test_rows_schema);
	damage_what_it_is_of();
	struct wanted wanted = {.kind = "damaged", .file = "extract.json", .row = -1};
	CU_ASSERT_EQUAL(verify(true, &wanted).left, 1);
	CU_ASSERT_EQUAL(wanted.found, 1);
}

static void shards_that_were_made_otherwise_are_named(void)
{
	root_fresh();
	struct smalti_shard_schema other = test_rows_schema;
	other.provenance = "{\"model\":\"another\"}";
	make_rows(SHARD, &test_rows_schema);
	make_rows(2 * SHARD, &other);
	make_rows(ITEMS, &test_rows_schema);
	struct wanted wanted = {.kind = "different", .file = second, .row = -1};
	verify(false, &wanted);
	CU_ASSERT_EQUAL(wanted.found, 1);
	CHECK(strstr(wanted.last, "provenance") && strstr(wanted.last, first), wanted.last);
	CU_ASSERT_EQUAL(verify(true, &wanted).left, 1);
	CU_ASSERT_EQUAL(access(root_at(second), F_OK), 0);
}

/* What another version of the program has made is not taken for damage. */
static void other_versions_stay_as_they_are(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_verify_result result;
	const struct smalti_verify_options options = {.repair = true};
	struct wanted wanted = {.kind = "damaged", .file = second, .row = -1};
	root_fresh();
	make_rows(ITEMS, &test_rows_schema);
	size_t size;
	char *data = smalti_file_read(root_at(second), 1 << 26, &size, &error);
	data[size - 62 + 13] = '1';
	root_put(second, data, size);
	free(data);
	CU_ASSERT(verify(false, &wanted).problems > 0 && wanted.found == 1);
	FAILS(smalti_verify(root, &options, &result, &error), &error, SMALTI_EUNSUPPORTED, "a shard",
	      "version 2 was expected");
	CU_ASSERT(result.left == 1 && root_has(second));

	cJSON *object = cJSON_Parse("{\"format\":\"smalti features\",\"version\":1,\"identity\":{}}");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	SUCCEEDS(smalti_sealed_write(root_at("extract.json"), object, &error), &error, "extract.json");
	cJSON_Delete(object);
	FAILS(smalti_verify(root, &options, &result, &error), &error, SMALTI_EUNSUPPORTED, "a directory",
	      "extract.json", "\"version\" is 1");
	CU_ASSERT(root_has(first) && root_has(second));
}

static void foreign_directories_are_refused(void)
{
	root_fresh();
	struct smalti_verify_result result;
	const struct smalti_verify_options options = {.repair = true};
	for (int made = 0; made < 2; made++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_verify(root, &options, &result, &error), &error, SMALTI_EINVAL, "foreign",
		      "no directory of features");
		mkdir(root, 0777);
	}
	CU_ASSERT_EQUAL(rmdir(root), 0); /* nothing was left in it */
}

static const struct test tests[] = {
    {"what is whole is well", what_is_whole_is_well},
    {"any byte that is changed is named", any_byte_that_is_changed_is_named},
    {"every damage has its name", every_damage_has_its_name},
    {"what cannot be repaired is left", what_cannot_be_repaired_is_left},
    {"shards that were made otherwise are named", shards_that_were_made_otherwise_are_named},
    {"other versions stay as they are", other_versions_stay_as_they_are},
    {"foreign directories are refused", foreign_directories_are_refused},
};

TEST_MAIN("verify", tests)
