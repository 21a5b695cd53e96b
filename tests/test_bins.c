/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "harness.h"
#include "jobs/bins.h"
#include "jobs/resizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* golden/bins.json: "training" and "pipeline": the reference's tables, {resolution: [[ratio, height,
 * width]]}; "nearest": [{"image": [height, width], table: {resolution: [height, width]}}]; "cover":
 * image's height and width, bin's, those resized to, top, left: computed by the reference's Python
 * expressions. */
static cJSON *open_golden(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *golden = smalti_json_read(test_data("golden/bins.json"), 1 << 20, &error);
	SUCCEEDS(golden ? 0 : -1, &error, "golden/bins.json");
	return golden;
}

static const char *const kinds[] = {
    [SMALTI_BINS_TRAINING] = "training", [SMALTI_BINS_PIPELINE] = "pipeline", NULL};

static double number(const cJSON *array, int index)
{
	return cJSON_GetArrayItem(array, index)->valuedouble;
}

static void tables_are_the_references(void)
{
	cJSON *golden = open_golden();
	int tables = 0;
	for (int kind = 0; kinds[kind]; kind++) {
		const cJSON *table;
		cJSON_ArrayForEach (table, cJSON_GetObjectItem(golden, kinds[kind])) {
			struct smalti_error error = SMALTI_NO_ERROR;
			struct smalti_bin bins[SMALTI_BINS_MAX];
			const int count = smalti_bins_list(strtol(table->string, NULL, 10),
							   (enum smalti_bins)kind, bins, &error);
			SUCCEEDS(count > 0 ? 0 : -1, &error, table->string);
			CHECK(count == cJSON_GetArraySize(table), table->string);
			for (int i = 0; i < count && i < cJSON_GetArraySize(table); i++) {
				const cJSON *row = cJSON_GetArrayItem(table, i);
				char what[64];
				snprintf(what, sizeof(what), "%s %s, bin %d", kinds[kind], table->string, i);
				CHECK(bins[i].ratio == number(row, 0) &&
					  (double)bins[i].height == number(row, 1) &&
					  (double)bins[i].width == number(row, 2),
				      what);
			}
			tables++;
		}
	}
	CHECK(tables == 5 + 4, "tables");
	cJSON_Delete(golden);
}

static void those_of_128_are_whole_patches(void)
{
	static const struct smalti_bin expected[] = {
	    {0.25, 64, 256},  {0.27, 64, 240}, {0.42, 80, 192},  {0.6, 96, 160},
	    {0.78, 112, 144}, {1, 128, 128},   {1.29, 144, 112}, {1.67, 160, 96},
	    {2.4, 192, 80},   {3.75, 240, 64}, {4, 256, 64},
	};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_bin bins[SMALTI_BINS_MAX];
	const int count = smalti_bins_list(128, SMALTI_BINS_TRAINING, bins, &error);
	CHECK(count == COUNT(expected), "bins of 128");
	for (int i = 0; i < count && i < COUNT(expected); i++)
		CHECK(bins[i].ratio == expected[i].ratio && bins[i].height == expected[i].height &&
			  bins[i].width == expected[i].width,
		      "a bin of 128");
}

static void the_nearest_ratio_is_taken(void)
{
	cJSON *golden = open_golden();
	const cJSON *one;
	CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(golden, "nearest")) > 50, "cases");
	cJSON_ArrayForEach (one, cJSON_GetObjectItem(golden, "nearest")) {
		const cJSON *image = cJSON_GetObjectItem(one, "picture");
		const int64_t height = (int64_t)number(image, 0), width = (int64_t)number(image, 1);
		for (int kind = 0; kinds[kind]; kind++) {
			const cJSON *expected;
			cJSON_ArrayForEach (expected, cJSON_GetObjectItem(one, kinds[kind])) {
				struct smalti_error error = SMALTI_NO_ERROR;
				struct smalti_bin bin;
				char what[96];
				snprintf(what, sizeof(what), "%s %s of %lldx%lld", kinds[kind],
					 expected->string, (long long)width, (long long)height);
				SUCCEEDS(smalti_bins_nearest(strtol(expected->string, NULL, 10),
							     (enum smalti_bins)kind, height, width, &bin,
							     &error),
					 &error, what);
				CHECK((double)bin.height == number(expected, 0) &&
					  (double)bin.width == number(expected, 1),
				      what);
			}
		}
	}
	cJSON_Delete(golden);
}

/* Ratios whose distances are equal in double, too. */
static void the_smaller_ratio_wins_a_tie(void)
{
	static const struct {
		enum smalti_bins bins;
		int64_t resolution, height, width;
		double ratio;
	} cases[] = {
	    {SMALTI_BINS_PIPELINE, 1024, 11, 4, 2.5}, /* 2.75 between 2.5 and 3 */
	    {SMALTI_BINS_PIPELINE, 1024, 7, 2, 3},    /* 3.5 between 3 and 4 */
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_bin bin;
		SUCCEEDS(smalti_bins_nearest(cases[i].resolution, cases[i].bins, cases[i].height,
					     cases[i].width, &bin, &error),
			 &error, "tie");
		CHECK(bin.ratio == cases[i].ratio, "tie");
	}
}

static void what_has_no_bin_is_refused(void)
{
	static const struct {
		enum smalti_bins bins;
		int64_t resolution, height, width;
		const char *word;
	} cases[] = {
	    {SMALTI_BINS_TRAINING, 0, 1, 1, "2880, found 0"},
	    {SMALTI_BINS_TRAINING, -256, 1, 1, "found -256"},
	    {SMALTI_BINS_TRAINING, 768, 1, 1, "2048 or 2880, found 768"},
	    {SMALTI_BINS_PIPELINE, 2880, 1, 1, "1024 or 2048, found 2880"},
	    {SMALTI_BINS_PIPELINE, 128, 1, 1, "1024 or 2048, found 128"},
	    {SMALTI_BINS_PIPELINE, 256, 0, 1, "1x0"},
	    {SMALTI_BINS_TRAINING, 256, 1, -1, "-1x1"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_bin bin;
		FAILS(smalti_bins_nearest(cases[i].resolution, cases[i].bins, cases[i].height, cases[i].width,
					  &bin, &error),
		      &error, SMALTI_EINVAL, cases[i].word, cases[i].word);
	}
}

static void covering_is_the_references(void)
{
	cJSON *golden = open_golden();
	const cJSON *one;
	CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(golden, "cover")) > 100, "cases");
	cJSON_ArrayForEach (one, cJSON_GetObjectItem(golden, "cover")) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_fit fit;
		int64_t n[8];
		for (int i = 0; i < 8; i++)
			n[i] = (int64_t)number(one, i);
		char what[96];
		snprintf(what, sizeof(what), "%lldx%lld over %lldx%lld", (long long)n[1], (long long)n[0],
			 (long long)n[3], (long long)n[2]);
		SUCCEEDS(smalti_fit_cover(n[0], n[1], n[2], n[3], &fit, &error), &error, what);
		CHECK(fit.height == n[4] && fit.width == n[5] && fit.top == n[6] && fit.left == n[7], what);
		CHECK(fit.crop_height == n[2] && fit.crop_width == n[3], what);
		CHECK(fit.top >= 0 && fit.top + n[2] <= fit.height && fit.left >= 0 &&
			  fit.left + n[3] <= fit.width,
		      what);
	}
	cJSON_Delete(golden);
}

static void squeezing_crops_nothing(void)
{
	const struct smalti_fit fit = smalti_fit_stretch(304, 208);
	CHECK(fit.height == 304 && fit.width == 208 && fit.crop_height == 304 && fit.crop_width == 208,
	      "all");
	CHECK(fit.top == 0 && fit.left == 0, "all");
}

static void sides_that_none_has_are_refused(void)
{
	const int64_t max = SMALTI_FIT_SIDE_MAX;
	const struct {
		int64_t from_height, from_width, height, width;
		const char *word;
	} cases[] = {
	    {0, 1, 1, 1, "of 1x0"},
	    {1, -1, 1, 1, "of -1x1"},
	    {1, 1, 0, 1, "cover 1x0"},
	    {1, 1, 1, 0, "cover 0x1"},
	    {1, max + 1, 1, 1, "of 2147483648x1"},
	    {1, 1, INT64_MAX, 1, "expected sides of 1 to 2147483647"},
	    {1, max, 256, 256, "resized to 549755813632x256"},
	    {max, 1, max, max, "has to be cropped"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_fit fit;
		FAILS(smalti_fit_cover(cases[i].from_height, cases[i].from_width, cases[i].height,
				       cases[i].width, &fit, &error),
		      &error, SMALTI_EINVAL, cases[i].word, cases[i].word);
	}
}

static const struct test tests[] = {
    {"tables are the reference's", tables_are_the_references},
    {"those of 128 are whole patches", those_of_128_are_whole_patches},
    {"the nearest ratio is taken", the_nearest_ratio_is_taken},
    {"the smaller ratio wins a tie", the_smaller_ratio_wins_a_tie},
    {"what has no bin is refused", what_has_no_bin_is_refused},
    {"covering is the reference's", covering_is_the_references},
    {"squeezing crops nothing", squeezing_crops_nothing},
    {"sides that none has are refused", sides_that_none_has_are_refused},
};

TEST_MAIN("bins", tests)
