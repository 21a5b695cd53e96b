/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/file.h"
#include "harness.h"
#include "shard/index.h"
#include "shards.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct shard_case {
	const char *name;
	struct smalti_shard_schema schema;
	int64_t first, end, rows;
	int64_t tokens_max, latent_max;
} cases[] = {
    {"f32, two captions, images",
     {SMALTI_F32, 2, {"prompt", "a/b%."}, 7, 300, 4, 512, 0.13025, false, "{}"},
     0,
     37,
     37,
     9,
     5},
    {"f16", {SMALTI_F16, 1, {"prompt"}, 16, 120, 4, 256, 0.18215, false, "{\"a\":1}"}, 1000, 1031, 31, 40, 7},
    {"bf16, compressed", {SMALTI_BF16, 1, {".."}, 33, 300, 4, 1024, 1, true, "{}"}, 5, 60, 55, 30, 9},
    {"f16, compressed, ended early",
     {SMALTI_F16, 3, {"x", "y", "z"}, 5, 300, 1, 512, 1, true, "{}"},
     3,
     90,
     17,
     4,
     3},
    {"no rows at all", {SMALTI_F16, 1, {"prompt"}, 5, 300, 4, 512, 1, false, "{}"}, 9, 9, 0, 4, 3},
    {"no rows of ten, compressed",
     {SMALTI_F16, 1, {"prompt"}, 5, 300, 4, 512, 1, true, "{}"},
     9,
     19,
     0,
     4,
     3},
    {"texts only", {SMALTI_F16, 1, {"prompt"}, 64, 300, 0, 0, 1, false, "{}"}, 0, 21, 21, 25, 0},
    {"images only", {SMALTI_F32, 0, {NULL}, 0, 0, 4, 512, 1, false, "{}"}, 0, 21, 21, 0, 8},
    {"nothing in any row", {SMALTI_F16, 2, {"a", "b"}, 8, 300, 4, 512, 1, true, "{}"}, 0, 7, 7, 0, 0},
    {"several chunks", {SMALTI_F32, 1, {"prompt"}, 1024, 300, 4, 512, 1, false, "{}"}, 0, 60, 60, 60, 130},
    {"several chunks, compressed",
     {SMALTI_F16, 1, {"prompt"}, 1024, 300, 4, 512, 1, true, "{}"},
     0,
     60,
     60,
     60,
     130},
};

static const char *scratch_path(const char *name)
{
	static char path[4][512];
	static const char *directory;
	static int turn;
	char *to = path[turn++ % 4];
	directory = directory ? directory : test_scratch();
	snprintf(to, sizeof(path[0]), "%s/%s", directory, name);
	return to;
}

static int write_case(const struct shard_case *c, const char *path, struct smalti_error *error)
{
	const struct made_rows rows = {&c->schema, c->tokens_max, c->latent_max};
	return write_shard(path, &rows, c->first, c->end, c->first + c->rows, error);
}

/* Every row that a shard hands out is the one that was made. -1: at least one was refused as damaged. */
static int compare_rows(struct smalti_shard *shard, const struct shard_case *c)
{
	const struct made_rows rows = {&c->schema, c->tokens_max, c->latent_max};
	int status = 0;
	for (int64_t i = smalti_shard_info(shard)->first; i < smalti_shard_info(shard)->end; i++) {
		struct smalti_features_row row;
		struct smalti_error error = SMALTI_NO_ERROR;
		if (smalti_shard_row(shard, i, &row, &error) == 0) {
			CHECK(is_made_row(&rows, i, &row), c->name);
			continue;
		}
		CHECK(error.code == SMALTI_ECORRUPT && strstr(error.message, "row "), error.message);
		status = -1;
	}
	return status;
}

static void check_schema(const struct smalti_shard_schema *a, const struct smalti_shard_schema *b,
			 const char *name)
{
	CHECK(a->dtype == b->dtype && a->caption_count == b->caption_count &&
		  a->text_width == b->text_width && a->max_tokens == b->max_tokens &&
		  a->latent_channels == b->latent_channels && a->image_size == b->image_size &&
		  a->scaling_factor == b->scaling_factor && a->compress == b->compress &&
		  strcmp(a->provenance, b->provenance) == 0,
	      name);
	for (int i = 0; i < b->caption_count; i++)
		CHECK(strcmp(a->captions[i], b->captions[i]) == 0, name);
}

static void check_failures(struct smalti_shard *shard, const struct shard_case *c)
{
	int64_t expected = 0;
	for (int64_t i = c->first; i < c->first + c->rows; i++)
		expected += made_failures(i);
	CHECK(smalti_shard_info(shard)->failures == expected, c->name);
	int64_t before = -1;
	for (int64_t n = 0; n < smalti_shard_info(shard)->failures; n++) {
		struct smalti_shard_failure failure;
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_shard_failure(shard, n, &failure, &error), &error, c->name);
		CHECK(failure.index >= before && made_failures(failure.index) &&
			  strcmp(failure.stage, "vae") == 0 && strstr(failure.reason, "tried it") &&
			  strlen(failure.key) > 0,
		      c->name);
		before = failure.index;
	}
}

static void rows_come_back_as_they_were(void)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct shard_case *c = &cases[i];
		const char *path = scratch_path("round.h5");
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(write_case(c, path, &error), &error, c->name);
		struct smalti_shard *shard = smalti_shard_open(path, &error);
		SUCCEEDS(shard ? 0 : -1, &error, c->name);
		if (!shard)
			continue;
		CHECK(smalti_shard_info(shard)->first == c->first &&
			  smalti_shard_info(shard)->end == c->first + c->rows,
		      c->name);
		check_schema(smalti_shard_info(shard)->schema, &c->schema, c->name);
		CHECK(compare_rows(shard, c) == 0, c->name);
		check_failures(shard, c);
		struct smalti_features_row row;
		FAILS(smalti_shard_row(shard, c->first + c->rows, &row, &error), &error, SMALTI_EINVAL,
		      c->name, "has no row");
		smalti_shard_close(shard);
	}
}

/* The one that many cuts are made of: chunks and texts and images, but small. */
static unsigned char *read_case(const struct shard_case *c, size_t *size)
{
	const char *path = scratch_path("whole.h5");
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(write_case(c, path, &error), &error, c->name);
	return (unsigned char *)smalti_file_read(path, (size_t)1 << 28, size, &error);
}

static void write_bytes(const char *path, const unsigned char *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");
	CHECK(file && fwrite(bytes, 1, size, file) == size, path);
	if (file)
		fclose(file);
}

static void no_flipped_byte_goes_unnoticed(void)
{
	enum { FLIPS = 200 };
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct shard_case *c = &cases[i];
		size_t size = 0;
		unsigned char *bytes = read_case(c, &size);
		uint64_t random = 7 + i;
		for (int flip = 0; bytes && flip < FLIPS; flip++) {
			const size_t at = (size_t)((test_random(&random) + 1) / 2 * (float)size) % size;
			const unsigned char kept = bytes[at];
			bytes[at] ^= (unsigned char)(1u << flip % 8);
			const char *path = scratch_path("flipped.h5");
			write_bytes(path, bytes, size);
			struct smalti_error error = SMALTI_NO_ERROR;
			struct smalti_shard *shard = smalti_shard_open(path, &error);
			const bool noticed = !shard || compare_rows(shard, c) < 0;
			CHECK(noticed, c->name);
			CHECK(shard || error.code == SMALTI_ECORRUPT || error.code == SMALTI_EFORMAT,
			      error.message);
			smalti_shard_close(shard);
			bytes[at] = kept;
		}
		free(bytes);
	}
}

static void shards_that_are_cut_short_are_refused(void)
{
	enum { CUTS = 100 };
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t size = 0;
		unsigned char *bytes = read_case(&cases[i], &size);
		for (size_t cut = 0; bytes && cut < CUTS; cut++) {
			const size_t left =
			    cut < CUTS / 2 ? size - 1 - cut : (cut - CUTS / 2) * size / CUTS * 2;
			const char *path = scratch_path("cut.h5");
			write_bytes(path, bytes, left);
			struct smalti_error error = SMALTI_NO_ERROR;
			struct smalti_shard *shard = smalti_shard_open(path, &error);
			FAILS(shard ? 0 : -1, &error, left < 8 ? SMALTI_EFORMAT : SMALTI_ECORRUPT,
			      cases[i].name, "cut.h5");
			smalti_shard_close(shard);
		}
		free(bytes);
	}
}

#define HEAD(field) offsetof(struct smalti_shard_head, field)

/* Puts a changed index behind right checksums, and opens that. */
static struct smalti_shard *open_changed(struct smalti_shard_index *index, const unsigned char *bytes,
					 int64_t body, struct smalti_error *error)
{
	struct smalti_error sealing = SMALTI_NO_ERROR;
	char line[SMALTI_SHARD_TRAILER + 1];
	SUCCEEDS(smalti_shard_index_seal(index, (const char *)bytes, body, line, &sealing), &sealing, "seal");
	const char *path = scratch_path("changed.h5");
	FILE *file = fopen(path, "wb");
	fwrite(bytes, 1, (size_t)body, file);
	fwrite(index->bytes, 1, (size_t)index->length, file);
	fputs(line, file);
	fclose(file);
	return smalti_shard_open(path, error);
}

/* An index that contradicts itself or the file. */
/* What a row has is in memory when it was checked, and stays there; the next one is told. */
static void rows_of_a_file_that_changes_are_told(void)
{
	for (int i = 0; i < COUNT(cases); i++) {
		const struct shard_case *c = &cases[i];
		const char *path = scratch_path("cut");
		struct smalti_error error = SMALTI_NO_ERROR;
		if (c->rows < 2)
			continue;
		SUCCEEDS(write_case(c, path, &error), &error, c->name);
		struct smalti_shard *shard = smalti_shard_open(path, &error);
		struct smalti_features_row row;
		SUCCEEDS(shard ? smalti_shard_row(shard, c->first, &row, &error) : -1, &error, c->name);
		CU_ASSERT_EQUAL(truncate(path, 0), 0);
		uint64_t checksum = 0, same = 1;
		smalti_shard_checksum(&c->schema, &row, &checksum, &error);
		FAILS(smalti_shard_row(shard, c->first + 1, &row, &error), &error, SMALTI_EIO, c->name,
		      "row ", "changed while it was read", "found 0");
		FAILS(smalti_shard_check(shard, &error), &error, SMALTI_EIO, c->name, "changed");
		smalti_shard_close(shard);
		error = (struct smalti_error)SMALTI_NO_ERROR;
		SUCCEEDS(write_case(c, path, &error), &error, c->name);
		shard = smalti_shard_open(path, &error);
		SUCCEEDS(shard ? smalti_shard_row(shard, c->first, &row, &error) : -1, &error, c->name);
		smalti_shard_checksum(&c->schema, &row, &same, &error);
		CHECK(checksum == same, c->name);
		smalti_shard_close(shard);
	}
}

static void indexes_are_not_believed(void)
{
	enum {
		LAST_PIECE = -(int)sizeof(struct smalti_shard_piece),
		TEXTS = sizeof(struct smalti_shard_head)
	};
	static const struct {
		int64_t at; /* negative: from the end */
		int64_t value;
		const char *word;
	} changes[] = {
	    {HEAD(rows), 32, "piece"},
	    {HEAD(rows), -1, "rows"},
	    {HEAD(first), INT64_MAX, "rows"},
	    {HEAD(failures), -1, "entries"},
	    {HEAD(failures), INT64_MAX, "entries"},
	    {HEAD(dtype), 7, "type"},
	    {HEAD(captions), 0, "length"},
	    {HEAD(captions), 2, "length"},
	    {HEAD(captions), 1 << 20, "captions"},
	    {HEAD(text_width), 17, "piece"},
	    {HEAD(text_width), 0, "width"},
	    {HEAD(text_width), INT64_MAX / 2, "width"},
	    {HEAD(latent_channels), 1000000000, "channels"},
	    {HEAD(latent_channels), 0, "length"},
	    {HEAD(scaling_factor), INT64_C(0x7ff0) << 48, "infinite"},
	    {HEAD(image_values), INT64_MAX, "entries"},
	    {HEAD(tokens), (INT64_C(1) << 53) - 1, "length"},
	    {HEAD(text_bytes), 0, "size"},
	    {HEAD(text_bytes), INT64_MAX, "size"},
	    {HEAD(text_bytes), 1, "piece"},
	    {TEXTS, 0, "caption"},
	    {LAST_PIECE, INT64_MAX, "not in the file"},
	    {LAST_PIECE, -8, "not in the file"},
	    {LAST_PIECE + 8, -8, "not in the file"},
	    {LAST_PIECE + 8, INT64_MAX, "not in the file"},
	};
	size_t size = 0;
	unsigned char *bytes = read_case(&cases[1], &size);
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t length = strtoll((char *)bytes + size - 13, NULL, 10);
	const int64_t body = (int64_t)size - SMALTI_SHARD_TRAILER - length;
	for (size_t i = 0; i < COUNT(changes); i++) {
		struct smalti_shard_index index;
		struct smalti_error found = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_shard_index_parse(&index, bytes + body, length, body, &error), &error,
			 "the index");
		const int64_t at = changes[i].at < 0 ? length + changes[i].at : changes[i].at;
		struct smalti_shard_index changed = index;
		changed.bytes = malloc((size_t)length);
		memcpy(changed.bytes, index.bytes, (size_t)length);
		memcpy(changed.bytes + at, &changes[i].value, 8);
		struct smalti_shard *shard = open_changed(&changed, bytes, body, &found);
		CHECK(!shard && strstr(found.message, changes[i].word), found.message);
		smalti_shard_close(shard);
		smalti_shard_index_free(&changed);
		smalti_shard_index_free(&index);
	}
	free(bytes);
}

static void other_versions_are_refused(void)
{
	size_t size = 0;
	unsigned char *bytes = read_case(&cases[1], &size);
	const char *path = scratch_path("version.h5");
	for (char version = '1'; version <= '3'; version += 2) {
		struct smalti_error error = SMALTI_NO_ERROR;
		bytes[size - SMALTI_SHARD_TRAILER + 13] = (unsigned char)version;
		write_bytes(path, bytes, size);
		FAILS(smalti_shard_open(path, &error) ? 0 : -1, &error, SMALTI_EUNSUPPORTED, "version",
		      "version 2 was expected", version == '1' ? "found 1" : "found 3", "again");
	}
	free(bytes);
}

static void rows_out_of_turn_are_refused(void)
{
	const struct smalti_shard_schema *schema = &cases[1].schema;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_shard_writer *writer =
	    smalti_shard_create(scratch_path("turn.h5"), schema, 5, 7, &error);
	const struct smalti_features_row row = {.index = 6, .key = "k"}, next = {.index = 5, .key = "k"};
	FAILS(smalti_shard_append(writer, &row, &error), &error, SMALTI_EINVAL, "row 6 first", "row 5");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	SUCCEEDS(smalti_shard_append(writer, &next, &error), &error, "row 5");
	const struct smalti_shard_failure failure = {7, "k", "vae", "r"};
	FAILS(smalti_shard_fail(writer, &failure, &error), &error, SMALTI_EINVAL, "a failure of 7", "item 7");
	smalti_shard_discard(writer);
	smalti_shard_discard(NULL);
	const struct smalti_shard_schema twice = {SMALTI_F16, 2, {"p", "p"}, 16, 120, 0, 0, 1, false, "{}"};
	error = (struct smalti_error)SMALTI_NO_ERROR;
	FAILS(smalti_shard_create(scratch_path("twice.h5"), &twice, 0, 1, &error) ? 0 : -1, &error,
	      SMALTI_EINVAL, "captions", "\"p\" is there twice");
	FAILS(smalti_shard_create("/nonexistent/a.h5", schema, 0, 1, &error) ? 0 : -1, &error, SMALTI_EINVAL,
	      "kept", "twice");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	FAILS(smalti_shard_create("/nonexistent/a.h5", schema, 0, 1, &error) ? 0 : -1, &error, SMALTI_ENOENT,
	      "no directory", "/nonexistent/a.h5");
}

/* At every size that the file may have at most: writing ends with an error that says why, and nothing else.
 */
static void full_disks_are_told(void)
{
	const struct shard_case *c = &cases[9];
	struct rlimit kept;
	getrlimit(RLIMIT_FSIZE, &kept);
	signal(SIGXFSZ, SIG_IGN);
	size_t size = 0;
	free(read_case(c, &size));
	for (int i = 0; i < 40; i++) {
		const struct rlimit limit = {(rlim_t)((size - 1) * (size_t)i / 39), kept.rlim_max};
		setrlimit(RLIMIT_FSIZE, &limit);
		struct smalti_error error = SMALTI_NO_ERROR;
		const int status = write_case(c, scratch_path("full.h5"), &error);
		setrlimit(RLIMIT_FSIZE, &kept);
		FAILS(status, &error, SMALTI_EIO, c->name, "full.h5", "File too large", "limit");
	}
	signal(SIGXFSZ, SIG_DFL);
}

/* Of pages of files that are this process's own; 0 where the system does not say. */
static int64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;
	if (!file || fscanf(file, "%*s %*s %ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* Rows of 1 MiB, 96 of them: neither writing and verifying nor reading makes all of the file resident. */
static void memory_does_not_grow_with_the_shard(void)
{
	enum { ROWS = 96, TOKENS = 256, WIDTH = 1024, ALLOWED = 40 << 20 };
	const struct smalti_shard_schema schema = {SMALTI_F32, 1, {"prompt"}, WIDTH, TOKENS,
						   0,          0, 1,          false, "{}"};
	float *values = calloc((size_t)TOKENS * WIDTH, sizeof(float));
	int32_t ids[TOKENS] = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t before = resident_bytes();
	struct smalti_shard_writer *writer =
	    smalti_shard_create(scratch_path("large.h5"), &schema, 0, ROWS, &error);
	struct smalti_features_row row = {.key = "k", .texts = {{TOKENS, ids, values}}};
	for (row.index = 0; row.index < ROWS; row.index++)
		SUCCEEDS(smalti_shard_append(writer, &row, &error), &error, "append");
	struct smalti_shard *shard = smalti_shard_finish(writer, &made_timing, &error);
	SUCCEEDS(shard ? 0 : -1, &error, "finish");
	CHECK(resident_bytes() - before < ALLOWED, "what is resident after verifying");
	smalti_shard_close(shard);
	shard = smalti_shard_open(scratch_path("large.h5"), &error);
	for (int64_t i = 0; i < ROWS; i++)
		SUCCEEDS(smalti_shard_row(shard, i, &row, &error), &error, "row");
	CHECK(resident_bytes() - before < ALLOWED, "what is resident after reading");
	smalti_shard_close(shard);
	free(values);
}

static const struct test tests[] = {
    {"rows come back as they were", rows_come_back_as_they_were},
    {"no flipped byte goes unnoticed", no_flipped_byte_goes_unnoticed},
    {"shards that are cut short are refused", shards_that_are_cut_short_are_refused},
    {"rows of a file that changes are told", rows_of_a_file_that_changes_are_told},
    {"indexes are not believed", indexes_are_not_believed},
    {"other versions are refused", other_versions_are_refused},
    {"rows out of turn are refused", rows_out_of_turn_are_refused},
    {"full disks are told", full_disks_are_told},
    {"memory does not grow with the shard", memory_does_not_grow_with_the_shard},
};

TEST_MAIN("shard", tests)
