/* SPDX-License-Identifier: Apache-2.0
 *
 * What a directory of features has to be to be opened, what is removed from it, and when it is complete. */
#include "rows.h"
#include "store_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void differences_are_named(void)
{
	static const char first[] =
	    "{\"model\":{\"name\":\"a\",\"weights\":\"12\"},\"dtype\":\"f16\",\"size\":256,"
	    "\"captions\":[\"prompt\"]}";
	static const struct {
		const char *identity, *words[3];
	} cases[] = {
	    {"{\"captions\":[\"prompt\"],\"size\":256,\"dtype\":\"f16\",\"model\":{\"weights\":\"12\","
	     "\"name\":"
	     "\"a\"}}",
	     {NULL}},
	    {"{\"model\":{\"name\":\"a\",\"weights\":\"13\"},\"dtype\":\"f16\",\"size\":256,\"captions\":["
	     "\"prompt\"]}",
	     {"model.weights", "\"12\"", "\"13\""}},
	    {"{\"model\":{\"name\":\"a\",\"weights\":\"12\"},\"dtype\":\"f16\",\"size\":512,\"captions\":["
	     "\"prompt\"]}",
	     {"size = 256", "512", "another directory"}},
	    {"{\"model\":{\"name\":\"a\",\"weights\":\"12\"},\"dtype\":\"f16\",\"captions\":[\"prompt\"]}",
	     {"size", "256", "nothing"}},
	    {"{\"model\":{\"name\":\"a\",\"weights\":\"12\",\"more\":true},\"dtype\":\"f16\",\"size\":256,"
	     "\"captions\":[\"prompt\"]}",
	     {"model.more", "nothing", "true"}},
	    {"{\"model\":{\"name\":\"a\",\"weights\":\"12\"},\"dtype\":\"f16\",\"size\":256,\"captions\":["
	     "\"prompt\",\"b\"]}",
	     {"captions", "[\"prompt\"]", "[\"prompt\",\"b\"]"}},
	    {"{\"model\":\"a\",\"dtype\":\"f16\",\"size\":256,\"captions\":[\"prompt\"]}",
	     {"model", "\"12\"", "\"a\""}},
	};
	root_fresh();
	struct smalti_error making = SMALTI_NO_ERROR;
	smalti_store_close(store_open_as(first, 0, &making));
	CHECK(making.code == SMALTI_OK, making.message);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_store *store = store_open_as(cases[i].identity, 0, &error);
		if (!cases[i].words[0])
			CHECK(store, error.message);
		else
			FAILS(store ? 0 : -1, &error, SMALTI_EINVAL, cases[i].identity, cases[i].words[0],
			      cases[i].words[1], cases[i].words[2]);
		smalti_store_close(store);
	}
}

static void foreign_directories_are_refused(void)
{
	root_fresh();
	CU_ASSERT_EQUAL(mkdir(root, 0777), 0);
	root_put("thesis.tex", "x", 1);
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(store_open_as("{}", 0, &error) ? 0 : -1, &error, SMALTI_EINVAL, "foreign", "thesis.tex",
	      "extract.json");
	CU_ASSERT_FALSE(root_has(".lock"));
	unlink(root_at("thesis.tex"));
	smalti_store_close(store_open());

	struct smalti_error damaged = SMALTI_NO_ERROR;
	size_t length;
	char *text = root_get("extract.json", &length);
	text[20] ^= 1;
	root_put("extract.json", text, length);
	free(text);
	FAILS(store_open_as("{}", 0, &damaged) ? 0 : -1, &damaged, SMALTI_ECORRUPT, "damaged", "extract.json",
	      "checksum");
	unlink(root_at("extract.json"));
	root_put("shard-000000000000-000000000010.h5", "x", 1);
	struct smalti_error absent = SMALTI_NO_ERROR;
	FAILS(store_open_as("{}", 0, &absent) ? 0 : -1, &absent, SMALTI_EINVAL, "absent", "shard-",
	      "extract.json");
	CU_ASSERT(root_has("shard-000000000000-000000000010.h5"));

	root_put("file", "", 0);
	struct smalti_error file = SMALTI_NO_ERROR;
	const size_t directory = strlen(root);
	snprintf(root + directory, sizeof(root) - directory, "/file");
	FAILS(store_open_as("{}", 0, &file) ? 0 : -1, &file, SMALTI_EIO, "file", "/file");
	CU_ASSERT_PTR_NULL(store_open_as("{}", -1, &file));
}

static void what_is_nobody_s_is_removed(void)
{
	static const struct {
		const char *name;
		bool stays;
	} cases[] = {
	    {".shard-000000000100-000000000110.h5.0123456789abcdef.part", false},
	    {".manifest.json.123-4.part", false},
	    {".failed.jsonl.123-4.part", false},
	    {"claims/.000000000100-000000000110.123-0.part", false},
	    {"shard-000000000000-000000000010.h5", true},
	    {"shard-000000000100-000000000110.h5.broken", true},
	    {"shard-100-110.h5", true},
	    {".report.html.123-4.part", true},
	    {"notes.txt", true},
	};
	root_fresh();
	struct smalti_store *store = store_open();
	store_fill(store, 10, 10);
	struct smalti_range range;
	char holder[256];
	struct smalti_error error = SMALTI_NO_ERROR;
	store_claim(store, 20, 10, &range, holder);
	struct smalti_shard_writer *writer = smalti_store_begin(store, &range, &test_rows_schema, &error);
	for (size_t i = 0; i < COUNT(cases); i++)
		if (!root_has(cases[i].name))
			root_put(cases[i].name, "x", 1);
	smalti_store_close(store_open());
	for (size_t i = 0; i < COUNT(cases); i++)
		CHECK(root_has(cases[i].name) == cases[i].stays, cases[i].name);
	CU_ASSERT_EQUAL(root_count("", ".h5."), 2); /* what is being written, what is broken */
	smalti_store_abandon(store, &range, writer);
	smalti_store_close(store);
	CU_ASSERT_EQUAL(root_count("claims", ""), 0);
}

static void a_whole_directory_is_completed(void)
{
	root_fresh();
	struct smalti_store *store = store_open();
	struct smalti_error error = SMALTI_NO_ERROR;
	store_fill(store, 20, 10);
	SUCCEEDS(smalti_store_complete(store, 30, &error), &error, "too early");
	CU_ASSERT_FALSE(root_has("manifest.json"));
	store_fill(store, 30, 10);
	SUCCEEDS(smalti_store_complete(store, 30, &error), &error, "complete");
	CU_ASSERT(root_has("manifest.json") && root_has("failed.jsonl"));
	struct stat before, after;
	stat(root_at("manifest.json"), &before);
	smalti_store_close(store);

	store = store_open();
	SUCCEEDS(smalti_store_complete(store, 30, &error), &error, "again");
	stat(root_at("manifest.json"), &after);
	CU_ASSERT_EQUAL(before.st_ino, after.st_ino);
	store_fill(store, 31, 10);
	CU_ASSERT_FALSE(root_has("manifest.json")); /* it is of less than there is */
	smalti_store_close(store);
	store_check_cleanup();
}

static const struct test tests[] = {
    {"differences are named", differences_are_named},
    {"foreign directories are refused", foreign_directories_are_refused},
    {"what is nobody's is removed", what_is_nobody_s_is_removed},
    {"a whole directory is completed", a_whole_directory_is_completed},
};

TEST_MAIN("store directory", tests)
