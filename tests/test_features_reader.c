/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "shards.h"
#include "smalti/features.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 103, EACH = 10 };

static const struct smalti_shard_schema schema = {SMALTI_F16, 2,     {"prompt", "long"},   24, 300, 4, 512,
						  0.13025,    false, "{\"made\":\"here\"}"};
static const struct made_rows rows = {&schema, 12, 6};

/* Made once: nobody changes it. */
static const char *directory_of_all(void)
{
	static char directory[512];
	if (directory[0])
		return directory;
	snprintf(directory, sizeof(directory), "%s/features", test_scratch());
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(write_directory(directory, &rows, ITEMS, EACH, &error), &error, "a directory");
	return directory;
}

static struct smalti_features *open_with(const struct smalti_features_options *options)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_features *features = smalti_features_open(directory_of_all(), options, &error);
	SUCCEEDS(features ? 0 : -1, &error, "open");
	return features;
}

/* Reads to the end: the indices go to `order`, whose length is returned. */
static int64_t read_all(const struct smalti_features_options *options, int64_t order[ITEMS])
{
	struct smalti_features *features = open_with(options);
	struct smalti_features_row row;
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t count = 0;
	int status;
	while ((status = smalti_features_next(features, &row, &error)) == 1 && count < ITEMS) {
		CHECK(is_made_row(&rows, row.index, &row), "a row");
		order[count++] = row.index;
	}
	SUCCEEDS(status, &error, "to the end");
	CHECK(smalti_features_next(features, &row, &error) == 0, "the end stays");
	smalti_features_close(features);
	return count;
}

static struct smalti_features_options options_of(bool shuffled, uint64_t seed, uint64_t epoch,
						 int64_t prefetch)
{
	struct smalti_features_options options;
	smalti_features_defaults(&options);
	options.shuffled = shuffled;
	options.seed = seed;
	options.epoch = epoch;
	options.prefetch = prefetch;
	return options;
}

/* How often each of the items is there; all of them once: true. */
static bool is_each_once(const int64_t *order, int64_t count)
{
	int seen[ITEMS] = {0};
	bool once = count == ITEMS;
	for (int64_t i = 0; i < count; i++)
		once = once && seen[order[i]]++ == 0;
	return once;
}

static void all_is_said_of_a_directory(void)
{
	struct smalti_features *features = open_with(NULL);
	struct smalti_features_info info;
	smalti_features_info(features, &info);
	CHECK(info.rows == ITEMS && info.type == SMALTI_FEATURES_F16 && info.caption_count == 2 &&
		  strcmp(info.captions[1], "long") == 0 && info.text_width == 24 && info.max_tokens == 300 &&
		  info.latent_channels == 4 && info.image_size == 512 && info.scaling_factor == 0.13025 &&
		  strcmp(info.provenance, schema.provenance) == 0,
	      "info");
	smalti_features_close(features);
	smalti_features_close(NULL);
}

static void rows_come_in_order(void)
{
	static const int64_t prefetches[] = {0, 1, 7, 1000};
	for (size_t i = 0; i < COUNT(prefetches); i++) {
		const struct smalti_features_options options = options_of(false, 1, 2, prefetches[i]);
		int64_t order[ITEMS];
		CHECK(read_all(&options, order) == ITEMS, "all");
		for (int64_t k = 0; k < ITEMS; k++)
			CHECK(order[k] == k, "in order");
	}
}

/* The first rows of some orders, as python/smalti_features has them, too. */
static void orders_are_fixed_by_seed_and_epoch(void)
{
	static const struct {
		uint64_t seed, epoch;
		int64_t buffer, prefetch, first[6];
	} cases[] = {
	    {0, 0, 0, 0, {4, 64, 11, 92, 100, 85}},
	    {0, 0, 16, 5, {51, 25, 27, 58, 23, 29}},
	    {7, 1, 1, 0, {10, 11, 12, 13, 14, 15}},
	    {UINT64_MAX, 3, 40, 40, {25, 24, 35, 17, 18, 92}},
	};
	int64_t order[COUNT(cases)][ITEMS], again[ITEMS];
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_features_options options =
		    options_of(true, cases[i].seed, cases[i].epoch, cases[i].prefetch);
		options.buffer = cases[i].buffer;
		CHECK(is_each_once(order[i], read_all(&options, order[i])), "each once");
		CHECK(read_all(&options, again) == ITEMS && memcmp(again, order[i], sizeof(again)) == 0,
		      "again");
		CHECK(memcmp(order[i], cases[i].first, sizeof(cases[i].first)) == 0,
		      "the order that is written down");
		for (size_t j = 0; j < i; j++)
			CHECK(memcmp(order[i], order[j], sizeof(again)) != 0, "another");
	}
}

static void parts_share_the_rows(void)
{
	static const int64_t parts[] = {1, 2, 3, 7, 11, 64};
	for (size_t i = 0; i < COUNT(parts) * 2; i++) {
		struct smalti_features_options options = options_of(i % 2, 5, i, 0);
		int64_t order[ITEMS], count = 0;
		options.parts = parts[i / 2];
		for (options.part = 0; options.part < options.parts; options.part++) {
			int64_t own[ITEMS];
			const int64_t have = read_all(&options, own);
			CHECK(count + have <= ITEMS, "too many");
			for (int64_t k = 0; k < have && count < ITEMS; k++)
				order[count++] = own[k];
		}
		CHECK(is_each_once(order, count), "each in one part");
	}
}

static void stopped_epochs_go_on(void)
{
	for (int variant = 0; variant < 4; variant++) {
		struct smalti_features_options options = options_of(variant % 2, 9, 4, variant == 3 ? 3 : 0);
		int64_t order[ITEMS], rest[ITEMS];
		options.buffer = 17;
		options.complete = variant >= 2;
		const int64_t count = read_all(&options, order);
		CHECK(variant < 2 ? count == ITEMS : count > 0 && count < ITEMS, "the whole epoch");
		for (options.skip = 0; options.skip < ITEMS + 5; options.skip++) {
			const int64_t left = options.skip < count ? count - options.skip : 0;
			CHECK(read_all(&options, rest) == left &&
				  memcmp(rest, order + count - left, (size_t)left * sizeof(*rest)) == 0,
			      "the rest");
		}
	}
}

static bool is_complete(int64_t index)
{
	struct smalti_features_row row;
	make_row(&rows, index, &row);
	return row.texts[0].tokens && row.texts[1].tokens && row.image.latent_height;
}

static void incomplete_rows_are_left_out(void)
{
	struct smalti_features_options options = options_of(false, 0, 0, 0);
	int64_t order[ITEMS], at = 0;
	options.complete = true;
	const int64_t count = read_all(&options, order);
	for (int64_t i = 0; i < ITEMS; i++)
		if (is_complete(i))
			CHECK(at < count && order[at++] == i, "a complete row");
	CHECK(at == count, "no other");
}

static void rows_are_found_by_index(void)
{
	const struct smalti_features_options options = options_of(false, 0, 0, 4);
	struct smalti_features *features = open_with(&options);
	struct smalti_features_row row, looked_up;
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int64_t i = 0; i < ITEMS; i++) {
		const int64_t other = i * 71 % ITEMS;
		CHECK(smalti_features_next(features, &row, &error) == 1, "next");
		SUCCEEDS(smalti_features_get(features, other, &looked_up, &error), &error, "get");
		CHECK(is_made_row(&rows, other, &looked_up), "got");
		CHECK(is_made_row(&rows, i, &row), "not disturbed");
	}
	FAILS(smalti_features_get(features, ITEMS, &row, &error), &error, SMALTI_EINVAL, "beyond",
	      "no row 103");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	FAILS(smalti_features_get(features, -1, &row, &error), &error, SMALTI_EINVAL, "before", "no row -1");
	smalti_features_close(features);
}

static void flip(const char *path, long from_end, long at)
{
	FILE *file = fopen(path, "r+b");
	CHECK(file, path);
	if (!file)
		return;
	fseek(file, from_end ? -from_end : at, from_end ? SEEK_END : SEEK_SET);
	const int byte = fgetc(file);
	fseek(file, -1, SEEK_CUR);
	fputc(byte ^ 1, file);
	fclose(file);
}

/* The place of an image's values in the file. */
static long find_values(const char *path, const void *values, size_t bytes)
{
	FILE *file = fopen(path, "rb");
	char *all = malloc(1 << 20);
	const size_t size = file ? fread(all, 1, 1 << 20, file) : 0;
	long found = -1;
	for (size_t i = 0; i + bytes <= size && found < 0; i++)
		if (memcmp(all + i, values, bytes) == 0)
			found = (long)i;
	free(all);
	if (file)
		fclose(file);
	return found;
}

static void damaged_rows_are_refused_and_no_others(void)
{
	for (int64_t prefetch = 0; prefetch <= 5; prefetch += 5) {
		char directory[512];
		snprintf(directory, sizeof(directory), "%s/damaged", test_scratch());
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(write_directory(directory, &rows, ITEMS, EACH, &error), &error, "a directory");
		struct smalti_features_row row;
		make_row(&rows, 24, &row);
		const char *path = shard_path(directory, 20, 30);
		flip(path, 0, find_values(path, row.texts[0].values, 48) + 5);
		flip(shard_path(directory, 50, 60), 1, 0);
		const struct smalti_features_options options = options_of(false, 0, 0, prefetch);
		struct smalti_features *features = smalti_features_open(directory, &options, &error);
		SUCCEEDS(features ? 0 : -1, &error, "open");
		for (int64_t i = 0; i < ITEMS; i++) {
			struct smalti_error cause = SMALTI_NO_ERROR;
			const int status = smalti_features_next(features, &row, &cause);
			char name[32];
			snprintf(name, sizeof(name), "row %" PRId64, i);
			if (i == 24 || i / 10 == 5)
				FAILS(status, &cause, SMALTI_ECORRUPT, name, name,
				      i == 24 ? "shard-000000000020" : "shard-000000000050");
			else
				CHECK(status == 1 && is_made_row(&rows, i, &row), name);
		}
		CHECK(smalti_features_next(features, &row, &error) == 0, "the end");
		smalti_features_close(features);
		features =
		    smalti_features_open(directory, &options, &error); /* closed while it reads ahead */
		smalti_features_close(features);
	}
}

static void what_is_no_directory_is_refused(void)
{
	char directory[512];
	snprintf(directory, sizeof(directory), "%s", test_scratch());
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(smalti_features_open(directory, NULL, &error) ? 0 : -1, &error, SMALTI_EFORMAT,
	      "an empty directory", "extract.json");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	FAILS(smalti_features_open("/nonexistent", NULL, &error) ? 0 : -1, &error, SMALTI_ENOENT,
	      "no directory", "/nonexistent");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	SUCCEEDS(write_directory(directory, &rows, 30, 10, &error), &error, "a directory");
	char again[512];
	snprintf(again, sizeof(again), "%s", shard_path(directory, 15, 16));
	CHECK(link(shard_path(directory, 10, 20), again) == 0, again);
	FAILS(smalti_features_open(directory, NULL, &error) ? 0 : -1, &error, SMALTI_ECORRUPT,
	      "an item that is there twice", "shard-000000000015", "another shard");
}

static void impossible_options_are_refused(void)
{
	static const struct {
		struct smalti_features_options options;
		const char *word;
	} cases[] = {
	    {{.parts = 0}, "part"},
	    {{.parts = 2, .part = 2}, "part"},
	    {{.parts = 2, .part = -1}, "part"},
	    {{.parts = 1, .skip = -1}, "skip"},
	    {{.parts = 1, .buffer = -1}, "shuffle"},
	    {{.parts = 1, .prefetch = -1}, "ahead"},
	    {{.parts = 1, .prefetch = INT64_MAX}, "ahead"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_features_open(directory_of_all(), &cases[i].options, &error) ? 0 : -1, &error,
		      SMALTI_EINVAL, cases[i].word, cases[i].word);
	}
}

static const struct test tests[] = {
    {"all is said of a directory", all_is_said_of_a_directory},
    {"rows come in order", rows_come_in_order},
    {"orders are fixed by seed and epoch", orders_are_fixed_by_seed_and_epoch},
    {"parts share the rows", parts_share_the_rows},
    {"stopped epochs go on", stopped_epochs_go_on},
    {"incomplete rows are left out", incomplete_rows_are_left_out},
    {"rows are found by index", rows_are_found_by_index},
    {"damaged rows are refused and no others", damaged_rows_are_refused_and_no_others},
    {"what is no directory is refused", what_is_no_directory_is_refused},
    {"impossible options are refused", impossible_options_are_refused},
};

TEST_MAIN("features reader", tests)
