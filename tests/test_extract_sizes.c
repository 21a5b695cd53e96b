/* SPDX-License-Identifier: Apache-2.0 */
/* How much an extraction computes together, by the memory of devices and of the machine, and how many items a
 * shard has then: tables. */
#include "extract/shard_items.h"
#include "extract/sizes.h"
#include "harness.h"
#include "store/directory.h"

#include <stdio.h>
#include <string.h>

static const int64_t GB = INT64_C(1) << 30, MB = 1 << 20;

/* T5-XXL's, in f32 but for its weights, which are bf16. */
enum { WIDTH = 4096, FF_WIDTH = 10240, LAYERS = 24, TABLE = 32128 };
static const int64_t weights =
    2 * ((int64_t)LAYERS * WIDTH * (4 * WIDTH + 3 * FF_WIDTH) + (int64_t)TABLE * WIDTH);

static int64_t working_bytes(const struct smalti_text_encoder *encoder, int64_t tokens)
{
	(void)encoder;
	return tokens * (8 * WIDTH + FF_WIDTH) * (int64_t)sizeof(float);
}

static struct smalti_text_encoder xxl(int64_t band_tokens)
{
	static const struct smalti_text_encoder_functions functions = {.working_bytes = working_bytes};
	return (struct smalti_text_encoder){.functions = &functions,
					    .token_flops = 2.0 * LAYERS * WIDTH * (4 * WIDTH + 3 * FF_WIDTH),
					    .band_tokens = band_tokens,
					    .task_weights = INT64_C(2) * TABLE * WIDTH};
}

static void packs_follow_a_devices_memory(void)
{
	static const struct {
		int64_t megabytes, band, pack;
	} cases[] = {
	    {256, 4096, 1},         {640, 4096, 1},          {1280, 4096, 256},      {1536, 4096, 512},
	    {4 << 10, 4096, 1024},  {8 << 10, 4096, 2048},   {16 << 10, 4096, 4096}, {24 << 10, 4096, 4096},
	    {80 << 10, 4096, 4096}, {141 << 10, 4096, 4096}, {8 << 10, 512, 2048},   {141 << 10, 512, 2048},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		const struct smalti_device_shares shares = smalti_device_shares_of(cases[i].megabytes * MB);
		const struct smalti_text_encoder encoder = xxl(cases[i].band);
		const struct smalti_extract_room room =
		    smalti_extract_room_on(&shares, 1, 1, 512 * GB, weights);
		const int64_t pack = smalti_extract_pack_tokens(&encoder, &room);
		char what[128];
		snprintf(what, sizeof(what), "%d MB, bands of %d: packs of %d", (int)cases[i].megabytes,
			 (int)cases[i].band, (int)pack);
		CHECK(pack == cases[i].pack, what);
		CHECK(room.place == 1 && room.workers == 1 && room.all == room.each, what);
		CHECK(room.each >= shares.tiles / 2 && room.each < shares.tiles, what);
		CHECK(pack == 1 ||
			  working_bytes(&encoder, smalti_min(pack, cases[i].band)) + encoder.task_weights <=
			      shares.task,
		      what);
		CHECK(smalti_extract_window_tokens(&encoder, pack) >= 2 * pack, what);
	}
}

/* Gives several devices more jobs, none of which is larger; main memory bounds them. */
static void rooms_are_the_devices(void)
{
	static const struct {
		int devices;
		int64_t main; /* GB */
		int64_t each, all;
		int place;
	} cases[] = {{1, 64, 12, 12, 3}, {4, 64, 12, 48, 3}, {4, 20, 12, 20, 3}, {4, 5, 5, 5, 0}};
	const struct smalti_device_shares shares = smalti_device_shares_of(24 * GB);
	for (int i = 0; i < COUNT(cases); i++) {
		const struct smalti_extract_room room =
		    smalti_extract_room_on(&shares, 3, cases[i].devices, cases[i].main * GB, 8 * GB);
		CHECK(room.each == cases[i].each * GB && room.all == cases[i].all * GB, "bytes");
		CHECK(room.place == cases[i].place && room.workers == cases[i].devices, "whose");
	}
}

static void packs_follow_main_memory(void)
{
	static const struct {
		int64_t megabytes, pack;
	} cases[] = {{-500, 512}, {0, 512}, {300, 512}, {900, 1024}, {2 << 10, 2048}, {512 << 10, 2048}};
	const struct smalti_text_encoder encoder = xxl(512);
	for (int i = 0; i < COUNT(cases); i++) {
		const struct smalti_extract_room room = {.each = cases[i].megabytes * MB,
							 .all = cases[i].megabytes * MB,
							 .task = INT64_MAX,
							 .workers = 2};
		CHECK(smalti_extract_pack_tokens(&encoder, &room) == cases[i].pack, "pack");
	}
	CHECK(smalti_extract_window_tokens(&encoder, 0) == 2159, "a window of some seconds");
}

/* Decides for a whole number of packs, and one at least. */
static void shards_are_whole_packs(void)
{
	static const struct {
		struct smalti_shard_facts facts;
		int64_t items;
	} cases[] = {
	    /* 1 GiB of captions of 36 tokens; of images of 512 px; of rows that are larger than a shard */
	    {{294912, 500, 113.8, INT64_C(1) << 30, INT64_C(1) << 40}, 3616},
	    {{65536, 100, 68, INT64_C(1) << 30, INT64_C(1) << 40}, 16320},
	    {{3e9, 100, 4, INT64_C(1) << 30, INT64_C(1) << 40}, 4},
	    {{1e300, 1e300, 1, INT64_C(1) << 30, INT64_C(1) << 40}, 1},
	    /* short lists have shards for others, too */
	    {{65536, 100, 8, 14, INT64_C(1) << 40}, 8},
	    {{65536, 100, 8, 6400, INT64_C(1) << 40}, 96},
	    /* memory; all that there may be; nothing is known of the rows */
	    {{1, 1000, 10, INT64_C(1) << 40, 1000000}, 1000},
	    {{1, 1, 10, INT64_C(1) << 40, INT64_C(1) << 40}, 1048570},
	    {{0, 0, 0, INT64_C(1) << 40, INT64_C(1) << 40}, 1 << 20},
	    {{65536, 100, 8, 0, -1}, 8},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		char what[64];
		const int64_t items = smalti_shard_items_auto(&cases[i].facts);
		snprintf(what, sizeof(what), "case %d: %lld items", i, (long long)items);
		CHECK(items == cases[i].items, what);
	}
}

/* Reads what stands in a directory, or cannot. */
static void what_is_recorded_is_checked(void)
{
	static const struct {
		const char *identity;
		int64_t items; /* -1: refused */
	} cases[] = {
	    {"{}", 1024},
	    {"{\"shard_items\":1}", 1},
	    {"{\"shard_items\":1073741824}", 1 << 30},
	    {"{\"shard_items\":1073741825}", -1},
	    {"{\"shard_items\":0}", -1},
	    {"{\"shard_items\":-5}", -1},
	    {"{\"shard_items\":1.5}", -1},
	    {"{\"shard_items\":1e300}", -1},
	    {"{\"shard_items\":\"8\"}", -1},
	    {"{\"shard_items\":null}", -1},
	    {"{\"shard_items\":[8]}", -1},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		const char *directory = test_scratch();
		struct smalti_error error = SMALTI_NO_ERROR;
		SCOPED(cJSON_Delete) cJSON *identity = cJSON_Parse(cases[i].identity);
		SUCCEEDS(smalti_directory_describe(directory, identity, &error), &error, cases[i].identity);
		const int64_t items = smalti_shard_items_recorded(directory, &error);
		CHECK(items == cases[i].items, cases[i].identity);
		CHECK(items > 0 || (strstr(error.message, "/extract.json: ") &&
				    strstr(error.message, "\"shard_items\"")),
		      error.message);
	}
}

static const struct test tests[] = {
    {"packs follow a device's memory", packs_follow_a_devices_memory},
    {"rooms are the devices'", rooms_are_the_devices},
    {"packs follow main memory", packs_follow_main_memory},
    {"shards are whole packs", shards_are_whole_packs},
    {"what is recorded is checked", what_is_recorded_is_checked},
};

TEST_MAIN("extract sizes", tests)
