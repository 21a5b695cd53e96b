/* SPDX-License-Identifier: Apache-2.0
 *
 * What bands of a feature map publish: their edges, and statistics that a tree of merges makes into the whole
 * map's, for more bands than one merge takes. */
#include "graphs/vae/feature_map.h"
#include "harness.h"
#include "kernel_case.h"
#include "stage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 3, CHANNELS = 4, GROUPS = 2, ROW = WIDTH * CHANNELS, MAX_ROWS = 300 };

static struct smalti_session *session;
static float map_values[MAX_ROWS * ROW];

struct kept {
	float *to;
	int64_t count;
};

static int keep(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	struct kept *kept = user;
	memcpy(kept->to, values, (size_t)count * sizeof(*values));
	kept->count += count;
	return 0;
}

static void fetch(struct smalti_task_group *task_group, struct smalti_tile *tile, struct kept *kept)
{
	smalti_insert(deliver, task_group, (.x = tile),
		      .count = tile->rows * tile->row_bytes / (int64_t)sizeof(float), .sink = keep,
		      .user = kept);
}

/* The moments of the whole map from bands of `height` rows; checks the edges of each band. */
static void publish(int64_t rows, int64_t height, struct smalti_moments moments[GROUPS])
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "features", 0, &error);
	struct smalti_partition partition = {0};
	SUCCEEDS(smalti_partition_even(&partition, rows, height, &error), &error, "cut");
	struct smalti_feature_map map =
	    smalti_feature_map_new(task_group, &partition, 1, 1, WIDTH, CHANNELS, partition.bands);
	for (int64_t b = 0; b < partition.bands; b++) {
		smalti_tile_release(map.body[b]);
		map.body[b] =
		    smalti_tile_upload(task_group, smalti_partition_rows(&partition, b) * WIDTH,
				       CHANNELS * sizeof(float), map_values + partition.first[b] * ROW);
	}
	for (int64_t b = 0; b < partition.bands; b++)
		smalti_feature_map_publish(task_group, &map, b, GROUPS);
	smalti_feature_map_merge(task_group, &map, GROUPS);
	float(*edge)[ROW] = calloc((size_t)(2 * partition.bands), sizeof(*edge));
	struct kept *kept = calloc((size_t)(2 * partition.bands + 1), sizeof(*kept));
	if (!edge || !kept)
		abort();
	for (int64_t i = 0; i < 2 * partition.bands; i++) {
		struct smalti_tile *tile = i % 2 ? map.bottom[i / 2] : map.top[i / 2];
		kept[i].to = edge[i];
		CHECK((tile != NULL) == (i > 0 && i < 2 * partition.bands - 1), "edges inside the map only");
		if (tile)
			fetch(task_group, tile, &kept[i]);
	}
	kept[2 * partition.bands].to = (float *)(void *)moments;
	fetch(task_group, map.moments, &kept[2 * partition.bands]);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "publish");
	for (int64_t i = 1; i < 2 * partition.bands - 1; i++) {
		int64_t row = i % 2 ? partition.first[i / 2 + 1] - 1 : partition.first[i / 2];
		CHECK(kept[i].count == ROW && memcmp(edge[i], map_values + row * ROW, sizeof(edge[i])) == 0,
		      "edge");
	}
	smalti_feature_map_release(&map);
	smalti_task_group_free(task_group);
	smalti_partition_free(&partition);
	free(edge);
	free(kept);
}

static void statistics(void)
{
	/* one merge of up to 16 bands, trees of two levels up to 256, and of three */
	static const struct {
		int64_t rows, height;
	} many[] = {{257, 1}, {300, 1}, {299, 2}, {300, 7}};
	uint64_t state = 1;
	for (int64_t i = 0; i < MAX_ROWS * ROW; i++)
		map_values[i] = 3 + test_random(&state);
	for (int64_t i = 1; i <= 44; i++) {
		const int64_t rows = i <= 40 ? i : many[i - 41].rows,
			      height = i <= 40 ? 1 : many[i - 41].height;
		struct smalti_moments moments[GROUPS];
		publish(rows, height, moments);
		for (int group = 0; group < GROUPS; group++) {
			struct smalti_moments m =
			    kernel_moments(rows * WIDTH, CHANNELS, GROUPS, group, map_values);
			char what[64];
			snprintf(what, sizeof(what), "%lld rows in bands of %lld", (long long)rows,
				 (long long)height);
			CHECK(moments[group].count == m.count && fabs(moments[group].mean - m.mean) < 1e-12 &&
				  fabs(moments[group].m2 - m.m2) < 1e-9 * m.m2,
			      what);
		}
	}
}

static void scaled_cuts(void)
{
	static const struct {
		int64_t rows, height, factor, divisor, expected[4]; /* {-1}: refused */
	} cases[] = {
	    {5, 2, 1, 1, {0, 2, 4, 5}},  {5, 2, 8, 1, {0, 16, 32, 40}},
	    {12, 4, 1, 2, {0, 2, 4, 6}}, {5, 2, 1, 2, {-1}},
	    {3, 1, 1, 2, {-1}},          {3, 1, INT64_MAX / 2, 1, {-1}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_partition partition = {0}, scaled = {0};
		SUCCEEDS(smalti_partition_even(&partition, cases[i].rows, cases[i].height, &error), &error,
			 "cut");
		const bool refused = cases[i].expected[0] < 0;
		char what[64];
		snprintf(what, sizeof(what), "%lld rows by %lld/%lld", (long long)cases[i].rows,
			 (long long)cases[i].factor, (long long)cases[i].divisor);
		CHECK((smalti_partition_scale(&scaled, &partition, cases[i].factor, cases[i].divisor,
					      &error) < 0) == refused,
		      what);
		CHECK(refused == (error.code != SMALTI_OK), what);
		for (int64_t band = 0; !refused && band <= partition.bands; band++)
			CHECK(scaled.first[band] == cases[i].expected[band], what);
		smalti_partition_free(&partition);
		smalti_partition_free(&scaled);
	}
}

static const struct test tests[] = {{"edges and statistics", statistics}, {"scaled cuts", scaled_cuts}};

TEST_PROGRAM()
{
	session = stage_session(NULL, 0);
	int status = test_main("feature maps", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
