/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles that each kind of device has in a form of its own: made where they are read, once, and gone with the
 * tile.
 */
#include "codelets/codelets.h"
#include "harness.h"
#include "host/pool.h"
#include "rt/session.h"
#include "rt/tile_forms.h"
#include "smalti/session.h"

#include <stdatomic.h>

enum { ELEMENTS = 1000, READERS = 50 };

/* What is made of it, and how often. */
struct source {
	float value;
	bool fails;
	_Atomic int made, sums;
};

static int make(const void *user, enum smalti_device_kind device, void *memory, int64_t bytes,
		struct smalti_error *error)
{
	struct source *source = (struct source *)(uintptr_t)user;
	(void)device;
	CHECK(bytes == ELEMENTS * (int64_t)sizeof(float), "the bytes of the form");
	source->made++;
	for (int i = 0; i < ELEMENTS; i++)
		((float *)memory)[i] = source->value;
	return source->fails ? smalti_fail(error, SMALTI_EIO, "no such form") : 0;
}

static int add(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	struct source *source = user;
	(void)error;
	for (int64_t i = 0; i < count; i++)
		CHECK(values[i] == source->value, "the form");
	source->sums++;
	return 0;
}

static struct smalti_tile *tile_of(struct smalti_task_group *task_group, struct source *source)
{
	struct smalti_tile_forms forms = {.source = source, .make = make};
	for (int device = 0; device < SMALTI_DEVICE_KINDS; device++)
		forms.bytes[device] = ELEMENTS * (int64_t)sizeof(float);
	return smalti_tile_of_forms(task_group, &forms);
}

static int64_t used(const struct smalti_session *session)
{
	struct smalti_pool_state state;
	smalti_pool_state(session->pool, &state);
	return state.used;
}

/* With `readers` of one tile; its task group's status. */
static int read_it(struct smalti_session *session, struct source *source, int readers,
		   struct smalti_error *error)
{
	struct smalti_task_group *task_group = smalti_task_group_new(session, "forms", 0, error);
	struct smalti_tile *tile = tile_of(task_group, source);
	for (int i = 0; i < readers; i++)
		smalti_insert(deliver, task_group, (.x = tile), .count = ELEMENTS, .sink = add,
			      .user = source);
	smalti_task_group_wait(task_group);
	if (SMALTI_POOLED && !source->fails)
		CHECK((used(session) > 0) == (readers > 0), "memory is taken when it is read");
	smalti_tile_release(tile);
	const int status = smalti_task_group_status(task_group, error);
	smalti_task_group_free(task_group);
	return status;
}

static void check(struct smalti_session *session)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct source unread = {.value = 1}, source = {.value = 2}, failing = {.fails = true};
	SUCCEEDS(read_it(session, &unread, 0, &error), &error, "unread");
	CHECK(unread.made == 0, "what nobody reads is not made");
	SUCCEEDS(read_it(session, &source, READERS, &error), &error, "read");
	CHECK(source.made == 1 && source.sums == READERS, "made once for all");
	FAILS(read_it(session, &failing, READERS, &error), &error, SMALTI_EIO, "failing", "no such form");
	CHECK(failing.made >= 1 && failing.sums == 0, "nobody computes with what could not be made");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

static void workers(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_session_options options = {.cpus = 4};
	struct smalti_session *session = smalti_session_open(&options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	if (session)
		check(session);
}

static void sequential(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = smalti_session_open_sequential(&error);
	SUCCEEDS(session ? 0 : -1, &error, "sequential session");
	if (session)
		check(session);
}

static const struct test tests[] = {
    {"on workers", workers},
    {"without StarPU", sequential},
};

TEST_MAIN("forms of tiles", tests)
