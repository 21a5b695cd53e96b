/* SPDX-License-Identifier: Apache-2.0
 *
 * The random numbers of training against the reference (tests/data/train/README.md).
 */
#include "base/json.h"
#include "codelets/codelets.h"
#include "features/reader.h"
#include "harness.h"
#include "samplers/draws.h"

#include <math.h>

static cJSON *golden;

static const cJSON *part(const char *name)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (!golden)
		golden = smalti_json_read(test_data("train/draws.json"), 1 << 20, &error);
	const cJSON *found = cJSON_GetObjectItem(golden, name);
	SUCCEEDS(found ? 0 : -1, &error, name);
	return found;
}

static int64_t integer(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItem(object, key);
	CHECK(cJSON_IsNumber(item), key);
	return item ? (int64_t)item->valuedouble : -1;
}

/* JSON's numbers are doubles: 2^64 - 1 is read as 2^64. */
static uint64_t seed_of(const cJSON *object)
{
	const double value = cJSON_GetObjectItem(object, "seed")->valuedouble;
	return value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
}

static void seeds_are_those_of_the_reference(void)
{
	const cJSON *row;
	cJSON_ArrayForEach (row, part("seed32")) {
		const int64_t purpose = integer(row, "purpose") - ((int64_t)1 << 32);
		const uint32_t found =
		    smalti_stream_seed(seed_of(row), (enum smalti_stream_purpose)purpose,
				       (uint64_t)integer(row, "a"), (uint64_t)integer(row, "b"));
		CU_ASSERT_EQUAL(found, integer(row, "value"));
	}
}

/* The first values and the last two. */
static void check_values(const float *found, int64_t count, const cJSON *expected, const char *what)
{
	const int listed = cJSON_GetArraySize(expected);
	for (int i = 0; i < listed; i++) {
		const int64_t at = i < listed - 2 ? i : count - listed + i;
		CHECK(fabs(found[at] - cJSON_GetArrayItem(expected, i)->valuedouble) <= 1e-6, what);
	}
}

static void check_sample(const cJSON *row)
{
	enum { MOST = 1 << 16 };
	static float zeros_and_ones[2 * MOST], x0[MOST], noise[MOST], xt[MOST];
	const cJSON *extent;
	int64_t count = 1;
	cJSON_ArrayForEach (extent, cJSON_GetObjectItem(row, "shape"))
		count *= extent->valueint;
	CHECK(count <= MOST, "room");
	const uint32_t seed =
	    smalti_stream_seed(seed_of(row), SMALTI_STREAM_SAMPLE, (uint64_t)integer(row, "epoch"),
			       (uint64_t)integer(row, "index"));
	const struct smalti_sample_draws draws = smalti_draw_sample(seed);
	CU_ASSERT_EQUAL(draws.timestep, integer(row, "t"));
	CHECK(draws.drop == cJSON_GetObjectItem(row, "drop")->valuedouble, "drop");
	CHECK(draws.caption == cJSON_GetObjectItem(row, "caption")->valuedouble, "caption");
	for (int64_t i = 0; i < count; i++) {
		zeros_and_ones[i] = 0;
		zeros_and_ones[count + i] = 1;
	}
	const struct training_sample_data data = {
	    .moments = zeros_and_ones, .x0 = x0, .noise = noise, .xt = xt};
	struct training_sample_arguments a = {.count = count,
					      .t = draws.timestep,
					      .skip = SMALTI_SAMPLE_DRAWS,
					      .seed = seed,
					      .dtype = SMALTI_F32,
					      .draws = true,
					      .factor = 1};
	CU_ASSERT_EQUAL(smalti_cpu_training_sample(&data, &a, NULL), 0);
	check_values(noise, count, cJSON_GetObjectItem(row, "noise"), "noise");
	check_values(x0, count, cJSON_GetObjectItem(row, "posterior"), "posterior");
	a.draws = false;
	CU_ASSERT_EQUAL(smalti_cpu_training_sample(&data, &a, NULL), 0);
	CHECK(test_max_abs(x0, count) == 0, "the mean");
}

static void samples_are_those_of_the_reference(void)
{
	const cJSON *row;
	cJSON_ArrayForEach (row, part("draws"))
		check_sample(row);
}

static void check_order(const cJSON *row)
{
	const struct smalti_features_options options = {.shuffled = true,
							.seed = seed_of(row),
							.epoch = (uint64_t)integer(row, "epoch"),
							.buffer = integer(row, "buffer"),
							.parts = 1};
	const cJSON *shards = cJSON_GetObjectItem(row, "rows of shards"), *expected;
	int64_t rows[8];
	const int count = cJSON_GetArraySize(shards);
	for (int i = 0; i < count; i++)
		rows[i] = cJSON_GetArrayItem(shards, i)->valueint;
	struct smalti_features_order *order = smalti_features_order_open(&options, rows, count, NULL);
	struct smalti_features_place place;
	cJSON_ArrayForEach (expected, cJSON_GetObjectItem(row, "shard.row")) {
		char found[48] = "";
		if (smalti_features_order_next(order, &place))
			snprintf(found, sizeof(found), "%" PRId64 ".%" PRId64, place.shard, place.row);
		CU_ASSERT_STRING_EQUAL(found, expected->valuestring);
	}
	CHECK(!smalti_features_order_next(order, &place), "the end");
	smalti_features_order_close(order);
}

static void orders_are_those_of_the_reference(void)
{
	const cJSON *row;
	cJSON_ArrayForEach (row, part("order"))
		check_order(row);
}

TEST_PROGRAM()
{
	static const struct test tests[] = {
	    {"seeds are those of the reference", seeds_are_those_of_the_reference},
	    {"samples are those of the reference", samples_are_those_of_the_reference},
	    {"orders are those of the reference", orders_are_those_of_the_reference},
	};
	const int status = test_main("draws of training", tests, COUNT(tests));
	cJSON_Delete(golden);
	return status;
}
