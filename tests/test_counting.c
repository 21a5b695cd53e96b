/* SPDX-License-Identifier: Apache-2.0
 *
 * A session that counts what is inserted: arithmetic, tiles, and what comes to places.
 */
#include "codelets/codelets.h"
#include "harness.h"
#include "host/pool.h"
#include "rt/counting.h"
#include "rt/session.h"

enum { VALUES = 1000, BYTES = VALUES * sizeof(float), PLACES = 3 };

static struct smalti_session *counts;
static struct smalti_task_group *task_group;

static void begin(int places, bool devices)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	counts = smalti_session_open_counting(places, devices, &error);
	SUCCEEDS(counts ? 0 : -1, &error, "open");
	task_group = smalti_task_group_new(counts, "count", 0, &error);
}

static void end(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "count");
	smalti_task_group_free(task_group);
	SUCCEEDS(smalti_session_close(counts, &error), &error, "close");
}

static struct smalti_tile *tile(void)
{
	return smalti_tile_new(task_group, 1, BYTES);
}

static void write_at(int place, struct smalti_tile *y)
{
	smalti_task_group_place(task_group, place);
	smalti_insert(clear, task_group, (.y = y), .bytes = BYTES);
}

static void add_at(int place, struct smalti_tile *x, struct smalti_tile *y)
{
	smalti_task_group_place(task_group, place);
	smalti_insert(add, task_group, (.x = x, .y = y), .count = VALUES);
}

static int64_t tiles(int count)
{
	return count * smalti_pool_block_bytes(BYTES);
}

/* It stands beside a session in which tasks run, and refuses places that it has no bits for. */
static void beside_others(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *sequential = smalti_session_open_sequential(&error);
	SUCCEEDS(sequential ? 0 : -1, &error, "sequential");
	begin(2, true);
	CHECK(smalti_session_place_count(counts) == 2, "places");
	end();
	static const int wrong[] = {0, -1, SMALTI_BITS, 1 << 30};
	for (int i = 0; i < COUNT(wrong); i++)
		FAILS(smalti_session_open_counting(wrong[i], false, &error) ? 0 : -1, &error, SMALTI_EINVAL,
		      "so many", "places");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	struct smalti_task_group *runs = smalti_task_group_new(sequential, "runs", 0, &error);
	struct smalti_tile *x = smalti_tile_new(runs, 1, BYTES);
	smalti_insert(clear, runs, (.y = x), .bytes = BYTES);
	CHECK(x && x->memory, "tiles of the other session have memory");
	smalti_tile_release(x);
	smalti_task_group_free(runs);
	SUCCEEDS(smalti_session_close(sequential, &error), &error, "close");
}

/* Tasks are their rows' operations, where they run; nothing of a tile is touched. */
static void arithmetic(void)
{
	begin(PLACES, false);
	struct smalti_tile *x = tile(), *y = tile();
	CHECK(!x->memory, "a tile has no memory");
	write_at(1, x);
	write_at(2, y);
	add_at(2, x, y);
	add_at(SMALTI_ANYWHERE, x, y); /* y is the third place's */
	const struct smalti_counting *c = counts->counting;
	CHECK(c->all.flops == 2 * VALUES && c->all.operations == 4, "all");
	CHECK(c->at[2].flops == 2 * VALUES && c->at[2].operations == 3, "the third place");
	CHECK(c->at[0].operations == 0 && c->at[1].operations == 1, "the others");
	CHECK(counts->tiles == 2, "tiles are numbered");
	smalti_tile_release(x);
	smalti_tile_release(y);
	end();
}

/* A tile comes to a place once, and again behind a write elsewhere. */
static void transfers(void)
{
	begin(PLACES, true);
	struct smalti_tile *x = tile(), *y = tile(), *z = tile();
	write_at(1, x);
	smalti_tile_set_transfer_kind(x, SMALTI_TRANSFER_STREAM);
	write_at(2, y);
	write_at(2, z);
	const struct smalti_counting *c = counts->counting;
	for (int i = 0; i < 3; i++)
		add_at(2, x, y);
	CHECK(c->at[2].transfers[SMALTI_TRANSFER_STREAM] == BYTES, "once");
	add_at(1, y, x);
	add_at(2, x, z);
	CHECK(c->at[2].transfers[SMALTI_TRANSFER_STREAM] == 2 * BYTES, "again");
	CHECK(c->at[1].transfers[SMALTI_TRANSFER_OTHER] == BYTES, "the other way");
	CHECK(c->at[2].max[SMALTI_COUNTED_OWN] == tiles(2) &&
		  c->at[2].max[SMALTI_COUNTED_FOREIGN] == tiles(1),
	      "two of its own, and one that came");
	struct smalti_tile *const all[] = {x, y, z};
	for (int i = 0; i < COUNT(all); i++)
		smalti_tile_release(all[i]);
	for (int place = 0; place < PLACES; place++)
		CHECK(c->at[place].held[0] == 0 && c->at[place].held[1] == 0, "released");
	end();
}

/* What a layer releases is there until the next one. */
static void layers(void)
{
	begin(PLACES, false);
	for (int layer = 0; layer < 3; layer++) {
		smalti_task_group_at(task_group, layer, -1);
		for (int i = 0; i < 2; i++) {
			struct smalti_tile *x = tile();
			write_at(1, x);
			smalti_tile_release(x);
		}
	}
	CHECK(counts->counting->at[1].max[SMALTI_COUNTED_OWN] == tiles(2), "two of a layer");
	CHECK(counts->counting->at[1].blocks == 3 && counts->counting->at[2].blocks == 0, "layers");
	end();
}

/* Tasks behind a barrier wait for those before it: but those before the first one waited for nothing. It is a
 * barrier once more when it is written, and not when tasks go on behind it. */
static void barriers(void)
{
	begin(PLACES, false);
	struct smalti_tile *barrier = tile(), *before = tile();
	write_at(1, before);
	smalti_counting_mark(counts->counting);
	const struct smalti_counted_bytes *bytes = &counts->counting->at[1].bytes;
	for (int i = 0; i < 4; i++) {
		struct smalti_tile *x = tile(), *y = tile(), *elsewhere = tile();
		write_at(2, elsewhere);
		smalti_task_group_behind(task_group, NULL);
		write_at(1, barrier);
		for (int again = 0; again < 2; again++)
			smalti_task_group_behind(task_group, barrier);
		write_at(1, x);
		smalti_tile_release(x);
		smalti_task_group_behind(task_group, barrier);
		add_at(1, before, y);
		smalti_tile_release(y);
		smalti_tile_release(elsewhere);
	}
	CHECK(bytes->max == tiles(2), "two of a barrier's");
	CHECK(bytes->now == 0 && counts->counting->at[2].bytes.max == tiles(4), "a place without barriers");
	smalti_tile_release(barrier);
	smalti_tile_release(before);
	end();
}

static const struct test tests[] = {
    {"beside others", beside_others}, {"arithmetic", arithmetic},
    {"transfers", transfers},         {"layers", layers},
    {"barriers", barriers},
};

TEST_MAIN("counting", tests)
