/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include "harness.h"
#include "stage.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct smalti_session *judge_session(const struct judge_schedule *schedule)
{
	if (schedule->policy)
		return stage_session(schedule->policy, schedule->workers);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = smalti_session_open_sequential(&error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	return session;
}

const char *judge_schedule_name(const struct judge_schedule *schedule)
{
	static char name[64];
	snprintf(name, sizeof(name), "%s on %lld workers", schedule->policy ? schedule->policy : "nothing",
		 (long long)schedule->workers);
	return name;
}

static struct judge_result results[512];
static int result_count;

void judge_forget(void)
{
	for (int i = 0; i < result_count; i++)
		free(results[i].values);
	result_count = 0;
}

static bool same_size(const struct judge_result *a, const struct judge_result *b)
{
	return a->stage == b->stage && a->height == b->height && a->width == b->width;
}

void judge(const struct judge_result *found, const char *schedule)
{
	static const double tolerance = 1e-5;
	const struct judge_result *same_tiling = NULL, *first = NULL;
	char what[160];
	for (int i = 0; i < result_count; i++) {
		if (!same_size(&results[i], found))
			continue;
		first = first ? first : &results[i];
		same_tiling = results[i].tile == found->tile ? &results[i] : same_tiling;
	}
	snprintf(what, sizeof(what), "stage %d, %lld×%lld in tiles of %lld, %s", found->stage,
		 (long long)found->height, (long long)found->width, (long long)found->tile, schedule);
	const struct judge_result *other = same_tiling ? same_tiling : first;
	const size_t bytes = (size_t)found->count * sizeof(float);
	if (same_tiling)
		CHECK(memcmp(same_tiling->values, found->values, bytes) == 0, what);
	else if (other)
		CHECK(test_max_error(other->values, found->values, found->count) <=
			  tolerance * test_max_abs(other->values, found->count),
		      what);
	if (same_tiling)
		free(found->values);
	else if (result_count < COUNT(results))
		results[result_count++] = *found;
	else
		abort();
}

float *judge_array(int64_t count)
{
	float *values = malloc((size_t)count * sizeof(*values));
	if (!values)
		abort();
	return values;
}

float *judge_filled(int64_t count, double a, double b)
{
	float *values = judge_array(count);
	test_fill(values, count, a, b);
	return values;
}

int64_t judge_draw(uint64_t *state, const int64_t *choices, int count)
{
	return choices[(int)((test_random(state) + 1) / 2 * (float)count)];
}

int64_t judge_draw_tile(uint64_t *state, const int64_t *choices, int count, int64_t extent, int64_t max_tiles)
{
	int64_t tile;
	do {
		tile = judge_draw(state, choices, count);
		tile = tile < extent ? tile : extent;
	} while ((extent - 1) / tile >= max_tiles);
	return tile;
}
