/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks insert for a request, in what order and on which tiles, depends on its plan alone: not on the
 * policy, the workers, or on what fails when.
 */
#include "embedded.h"
#include "harness.h"
#include "rt/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { LATEST = 60000 }; /* microseconds: about as long as the image takes */

static uint32_t random_state = 1;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % below;
}

/* One run: what goes wrong in it, and what became of it. */
struct run {
	int refused;   /* the call of rows() that fails; -1: none */
	unsigned wait; /* microseconds until it is cancelled; 0: it is not */
	struct smalti_batch *batch;
	int calls, status;
};

static int take_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		     struct smalti_error *error)
{
	(void)first, (void)count, (void)rgb;
	struct run *run = user;
	return run->calls++ == run->refused ? smalti_fail(error, SMALTI_EIO, "refused") : 0;
}

static void keep_status(void *user, int status, const struct smalti_error *error)
{
	(void)error;
	((struct run *)user)->status = status;
}

static void *cancel(void *user)
{
	const struct run *run = user;
	usleep(run->wait);
	smalti_batch_cancel(run->batch);
	return NULL;
}

/* Whether it was taken: not when it was cancelled before. */
static bool submit(const struct smalti_model *model, struct run *run)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_request request;
	const struct smalti_image_callbacks callbacks = {.user = run, .rows = take_rows, .done = keep_status};
	smalti_request_defaults(&request);
	request.prompt = "a red star above a blue ring on a white background";
	request.width = 96;
	request.height = 160;
	request.steps = 4;
	const int status = embedded_submit(model, run->batch, &request, 0, &callbacks, &error);
	CHECK(status == 0 || error.code == SMALTI_ECANCELLED, error.message);
	return status == 0;
}

/* The hash of all that was inserted; 0: nothing of the image was. */
static uint64_t sequence_of(const char *policy, int cpus, struct run *run)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_session_options options = {.policy = policy, .cpus = cpus};
	struct smalti_session *session = smalti_session_open(&options, &error);
	SUCCEEDS(session ? 0 : -1, &error, policy);
	session->inserts_failed = true; /* as in an MPI job */
	struct smalti_model *model = embedded_open(session);
	run->batch = smalti_batch_open(model, &error);
	pthread_t canceller;
	if (run->wait)
		pthread_create(&canceller, NULL, cancel, run);
	const bool taken = submit(model, run);
	if (run->wait)
		pthread_join(canceller, NULL);
	smalti_batch_close(run->batch);
	const uint64_t sequence = taken ? session->sequence : 0;
	embedded_close(session, model);
	return sequence;
}

static void depends_on_the_plan_alone(void)
{
	static const char *const policies[] = {"lws", "eager", "dmda"};
	enum { MAX_CPUS = 3, RUNS = 4 };
	int failed = 0;
	for (int cpus = 1; cpus <= MAX_CPUS; cpus++) {
		struct run whole = {.refused = -1};
		const uint64_t expected = sequence_of("lws", cpus, &whole);
		CHECK(expected != 0 && whole.status == 0 && whole.calls > 1, "a whole image");
		for (int i = 0; i < RUNS; i++) {
			struct run run = {.refused = -1};
			if (i % 2)
				run.refused = (int)draw((uint32_t)whole.calls);
			else
				run.wait = 1 + draw(LATEST);
			const uint64_t found = sequence_of(policies[i % COUNT(policies)], cpus, &run);
			CHECK(found == expected || found == 0, "the same tasks on the same tiles");
			CHECK(i % 2 == 0 || run.status == -1, "it failed");
			failed += found && run.status < 0;
		}
	}
	CHECK(failed > MAX_CPUS, "failures while tasks were there");
}

static const struct test tests[] = {
    {"depends on the plan alone", depends_on_the_plan_alone},
};

TEST_MAIN("insertion", tests)
