/* SPDX-License-Identifier: Apache-2.0
 *
 * Where tiles are owned: distributions of bands, and how owners go from what is read to what is made of it.
 */
#include "codelets/codelets.h"
#include "harness.h"
#include "rt/grid.h"
#include "rt/places.h"
#include "rt/session.h"

#include <string.h>

static void distributions(void)
{
	static const struct {
		int64_t rows, height;
		double shares[3];
		int places;
		const char *owners; /* of the bands */
	} cases[] = {
	    {100, 25, {1}, 1, "0000"},
	    {100, 25, {1, 1}, 2, "0011"},
	    {100, 25, {3, 1}, 2, "0001"},
	    {100, 25, {0, 1}, 2, "1111"},
	    {100, 25, {1, 0, 1}, 3, "0022"},
	    {90, 10, {1, 1, 1}, 3, "000111222"},
	    {95, 10, {2, 1, 2}, 3, "0000112222"},
	    {10, 25, {1, 5}, 2, "1"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_partition partition;
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_partition_even(&partition, cases[i].rows, cases[i].height, &error), &error,
			 "bands");
		CHECK(!partition.owner, "no distribution at first");
		SUCCEEDS(smalti_partition_distribute(&partition, cases[i].shares, cases[i].places, &error),
			 &error, cases[i].owners);
		CHECK(partition.bands == (int64_t)strlen(cases[i].owners), cases[i].owners);
		for (int64_t band = 0; band < partition.bands; band++)
			CHECK(partition.owner[band] == cases[i].owners[band] - '0', cases[i].owners);
		smalti_partition_free(&partition);
	}
	struct smalti_partition partition;
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_partition_even(&partition, 10, 5, &error), &error, "bands");
	FAILS(smalti_partition_distribute(&partition, (const double[]){0, 0}, 2, &error), &error,
	      SMALTI_EINVAL, "nobody gets any", "shares", "above 0");
	smalti_partition_free(&partition);
}

enum { BYTES_OF_TILE = 16 };

static struct smalti_tile *tile_at(struct smalti_task_group *task_group, int owner)
{
	struct smalti_tile *tile = smalti_tile_upload(task_group, 1, BYTES_OF_TILE, (const float[4]){0});
	tile->owner = owner;
	return tile;
}

/* What is made is owned where the first of its inputs is; what is updated has its own, or none. */
static void owners(struct smalti_task_group *task_group)
{
	struct smalti_tile *here = tile_at(task_group, 0), *there = tile_at(task_group, 1),
			   *nowhere = tile_at(task_group, SMALTI_ANYWHERE),
			   *made = smalti_tile_new(task_group, 1, BYTES_OF_TILE),
			   *joined = smalti_tile_new(task_group, 2, BYTES_OF_TILE),
			   *free_made = smalti_tile_new(task_group, 1, BYTES_OF_TILE);
	CHECK(made->owner == SMALTI_ANYWHERE, "new tiles have none");
	smalti_insert(copy, task_group, (.x = there, .y = made), .bytes = BYTES_OF_TILE);
	CHECK(made->owner == 1, "as its input");
	smalti_insert(concat, task_group, (.first = nowhere, .second = here, .y = joined),
		      .first_bytes = BYTES_OF_TILE, .second_bytes = BYTES_OF_TILE);
	CHECK(joined->owner == 0, "as the first input that has one");
	smalti_insert(add_row, task_group, (.row = there, .y = nowhere), .rows = 1, .dim = 4);
	CHECK(nowhere->owner == SMALTI_ANYWHERE, "an update gives no owner");
	smalti_insert(add_row, task_group, (.row = there, .y = here), .rows = 1, .dim = 4);
	CHECK(here->owner == 0, "an owner stays");
	smalti_insert(copy, task_group, (.x = nowhere, .y = free_made), .bytes = BYTES_OF_TILE);
	CHECK(free_made->owner == SMALTI_ANYWHERE, "none from none");
	struct smalti_tile *const all[] = {here, there, nowhere, made, joined, free_made};
	for (int i = 0; i < COUNT(all); i++)
		smalti_tile_release(all[i]);
}

static void inheritance(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_session_options options = {.cpus = 2};
	struct smalti_session *session = smalti_session_open(&options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	if (!session)
		return;
	CHECK(smalti_session_place_count(session) == 1, "main memory");
	struct smalti_task_group *task_group = smalti_task_group_new(session, "owners", 0, &error);
	owners(task_group);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "tasks");
	smalti_task_group_free(task_group);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

static const struct test tests[] = {
    {"distributions", distributions},
    {"inheritance", inheritance},
};

TEST_MAIN("places", tests)
