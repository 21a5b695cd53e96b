/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for a directory's lock: who holds it is said, and they end. */
#include "base/clock.h"
#include "harness.h"
#include "root.h"
#include "share/lock.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A handle of its own, as another process has one. */
struct side {
	struct smalti_heartbeat *heartbeat;
	struct smalti_lock *lock;
};

static struct side side_open(int64_t beats, const struct smalti_lock_wait *wait)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct side side = {.heartbeat = smalti_heartbeat_start(beats, &error)};
	side.lock = smalti_lock_open(root, wait, side.heartbeat, &error);
	CHECK(side.lock, error.message);
	return side;
}

static void side_close(struct side *side)
{
	smalti_lock_close(side->lock);
	smalti_heartbeat_stop(side->heartbeat);
}

/* How long to wait, and what was told meanwhile. */
struct patience {
	double seconds;
	int told;
	char holder[256];
};

static bool go_on(void *user, const char *holder, double seconds)
{
	struct patience *patience = user;
	patience->told++;
	snprintf(patience->holder, sizeof(patience->holder), "%s", holder);
	return seconds < patience->seconds;
}

/* A holder that beats as one with such a lease does, and one who waits so long: the code and the message. */
static void waits_end(void)
{
	static const struct {
		const char *name;
		int64_t beats;
		double patience, min;
		enum smalti_code code;
		const char *says;
	} rows[] = {
	    {"one who loses patience", 1, 0.5, 0.5, SMALTI_ECANCELLED, "was ended"},
	    {"a silent holder", 1000, 600, 2.5, SMALTI_EIO, "no sign of life for"},
	    {"a slow holder", 1, 4.5, 4.5, SMALTI_ECANCELLED, "was ended"},
	};
	char self[64];
	snprintf(self, sizeof(self), "process %ld", (long)getpid());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		root_fresh();
		CU_ASSERT_EQUAL(mkdir(root, 0777), 0);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct patience patience = {.seconds = rows[i].patience};
		struct side holder = side_open(rows[i].beats, &(struct smalti_lock_wait){.lease_seconds = 1});
		struct side other = side_open(1, &(struct smalti_lock_wait){go_on, &patience, 1});
		SUCCEEDS(smalti_lock_acquire(holder.lock, NULL, &error), &error, rows[i].name);
		const double began = smalti_now();
		CHECK(smalti_lock_acquire(other.lock, NULL, &error) < 0, rows[i].name);
		const double took = smalti_now() - began;
		CHECK(took >= rows[i].min, rows[i].name);
		CU_ASSERT_EQUAL(error.code, rows[i].code);
		CHECK(strstr(error.message, rows[i].says) && strstr(error.message, self), error.message);
		CHECK(strstr(patience.holder, self) && patience.told >= (rows[i].patience > 1 ? 2 : 1),
		      patience.holder);

		/* What follows does not wait again, but has it when it is free. */
		struct smalti_error again = SMALTI_NO_ERROR, none = SMALTI_NO_ERROR;
		const int told = patience.told;
		CHECK(smalti_lock_acquire(other.lock, NULL, &again) < 0, rows[i].name);
		CHECK(patience.told == told, "at once");
		smalti_lock_release(holder.lock);
		SUCCEEDS(smalti_lock_acquire(other.lock, NULL, &none), &none, rows[i].name);
		smalti_lock_release(other.lock);
		side_close(&other);
		side_close(&holder);
	}
}

static const struct test tests[] = {
    {"waits end", waits_end},
};

TEST_MAIN("store lock", tests)
