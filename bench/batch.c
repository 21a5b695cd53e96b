/* SPDX-License-Identifier: Apache-2.0
 *
 * Usage: bench/batch [REPEATS]
 *
 * Prints the medians of 24 requests of mixed sizes with the embedded model, at the same time and one by one
 * in the same process, alternating, and their ratio. */
#include "base/clock.h"
#include "base/parse.h"
#include "bench/statistics.h"
#include "smalti/generate.h"

#include <stdio.h>
#include <stdlib.h>

enum { REQUESTS = 24, MAX_REPEATS = 101 };

static int drop_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		     struct smalti_error *error)
{
	(void)user, (void)first, (void)count, (void)rgb, (void)error;
	return 0;
}

static void check(void *user, int status, const struct smalti_error *error)
{
	(void)user;
	if (status < 0) {
		fprintf(stderr, "bench/batch: %s\n", error->message);
		exit(1);
	}
}

static void submit(const struct smalti_model *model, struct smalti_batch *batch, int i)
{
	static const int64_t sizes[][2] = {{128, 128}, {96, 160}, {160, 96}, {256, 256}, {64, 64}, {48, 208}};
	static const struct smalti_image_callbacks image = {.rows = drop_rows, .done = check};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_request request;
	smalti_request_defaults(&request);
	request.prompt = "a red star above a blue ring on a white background";
	request.width = sizes[i % 6][0];
	request.height = sizes[i % 6][1];
	request.seed = (uint64_t)i;
	struct smalti_plan *plan = smalti_request_resolve(model, &request, &error);
	check(NULL, plan ? smalti_batch_submit(batch, plan, 0, &image, &error) : -1, &error);
	smalti_plan_free(plan);
}

static double run(const struct smalti_model *model, struct smalti_batch *batch, int one_by_one)
{
	const double start = smalti_now();
	for (int i = 0; i < REQUESTS; i++) {
		submit(model, batch, i);
		if (one_by_one)
			smalti_batch_wait(batch);
	}
	smalti_batch_wait(batch);
	return smalti_now() - start;
}

int main(int argc, char **argv)
{
	int64_t repeats = 5;
	double together[MAX_REPEATS], alone[MAX_REPEATS];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options session_options;
	struct smalti_model_options model_options;
	if (argc > 1)
		check(NULL, smalti_parse_int64(argv[1], 1, MAX_REPEATS, &repeats, &error), &error);
	smalti_session_defaults(&session_options);
	smalti_model_defaults(&model_options);
	struct smalti_session *session = smalti_session_open(&session_options, &error);
	struct smalti_model *model = session ? smalti_model_open(session, &model_options, &error) : NULL;
	struct smalti_batch *batch = model ? smalti_batch_open(model, &error) : NULL;
	check(NULL, batch ? 0 : -1, &error);
	run(model, batch, 0); /* packs the weights, compiles the kernels */
	for (int i = 0; i < repeats; i++) {
		together[i] = run(model, batch, 0);
		alone[i] = run(model, batch, 1);
	}
	const double a = smalti_median(together, (int)repeats), b = smalti_median(alone, (int)repeats);
	printf("%d requests together %.3f s, one by one %.3f s, ratio %.3f\n", REQUESTS, a, b, a / b);
	smalti_batch_close(batch);
	smalti_model_close(model);
	return smalti_session_close(session, &error) < 0;
}
