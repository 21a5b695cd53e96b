/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "jobs/queue.h"
#include "stage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct other {
	struct smalti_queue queue;
	struct smalti_job job;
	atomic_bool opened;
};

static void complete(struct smalti_job *job)
{
	(void)job;
}

static void *open_job(void *user)
{
	struct other *other = user;
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_job_open(&other->queue, &other->job, "second", &error), &error, "second");
	atomic_store(&other->opened, true);
	smalti_job_submit(&other->job);
	return NULL;
}

/* Of a session, however many queues it has: the second job waits until the first has all of its tasks. */
static void one_job_inserts_at_a_time(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = stage_session(NULL, 1);
	struct smalti_queue queue;
	struct smalti_job job = {.complete = complete};
	struct other other = {.job.complete = complete};
	pthread_t thread;
	SUCCEEDS(smalti_queue_open(&queue, session, 1, &error), &error, "queue");
	SUCCEEDS(smalti_queue_open(&other.queue, session, 1, &error), &error, "other queue");
	SUCCEEDS(smalti_job_open(&queue, &job, "first", &error), &error, "first");
	pthread_create(&thread, NULL, open_job, &other);
	usleep(50000);
	CHECK(!atomic_load(&other.opened), "it waits");
	smalti_job_submit(&job);
	pthread_join(thread, NULL);
	CHECK(atomic_load(&other.opened), "it goes on");
	smalti_queue_drain(&queue);
	smalti_queue_drain(&other.queue);
	smalti_queue_close(&queue);
	smalti_queue_close(&other.queue);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

static const struct test tests[] = {
    {"one job inserts at a time", one_job_inserts_at_a_time},
};

TEST_MAIN("queue", tests)
