/* SPDX-License-Identifier: Apache-2.0 */
#include "received.h"
#include "harness.h"
#include "images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int on_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		   struct smalti_error *error)
{
	struct received *to = user;
	if (to->refuse_rows)
		return smalti_fail(error, SMALTI_EIO, "refused");
	if (first != to->next || first + count > to->height)
		return smalti_fail(error, SMALTI_EINVAL, "rows out of order");
	memcpy(to->rgb + first * to->width * 3, rgb, (size_t)(count * to->width * 3));
	to->next = first + count;
	return 0;
}

static int on_latents(void *user, const int64_t shape[3], const float *values, struct smalti_error *error)
{
	struct received *to = user;
	(void)error;
	const size_t bytes = (size_t)(shape[0] * shape[1] * shape[2]) * sizeof(float);
	memcpy(to->shape, shape, sizeof(to->shape));
	to->latents = malloc(bytes);
	memcpy(to->latents, values, bytes);
	return 0;
}

static void on_steps(void *user, const struct smalti_step_report *report)
{
	struct received *to = user;
	const size_t calls = (size_t)(report->steps * report->branches) * sizeof(*to->calls);
	const size_t ratios = (size_t)report->steps * sizeof(*to->ratios);
	CHECK(to->next == 0 && !to->latents, "the report comes first");
	to->steps = report->steps;
	to->branches = report->branches;
	to->calls = malloc(calls);
	memcpy(to->calls, report->calls, calls);
	if (!report->ratios)
		return;
	to->ratios = malloc(ratios);
	memcpy(to->ratios, report->ratios, ratios);
}

static void on_done(void *user, int status, const struct smalti_error *error)
{
	struct received *to = user;
	to->calls_of_done++;
	to->status = status;
	to->error = *error;
}

int received_submit(const struct smalti_model *model, struct smalti_batch *batch,
		    struct smalti_request *request, int64_t image, struct received *to,
		    struct smalti_error *error)
{
	const struct smalti_image_callbacks callbacks = {
	    .user = to, .rows = on_rows, .latents = on_latents, .steps = on_steps, .done = on_done};
	struct smalti_plan *plan = smalti_request_resolve(model, request, error);
	if (!plan)
		return -1;
	to->width = request->width;
	to->height = request->height;
	to->rgb = malloc((size_t)(to->width * to->height * 3));
	const int status = smalti_batch_submit(batch, plan, image, &callbacks, error);
	smalti_plan_free(plan);
	return status;
}

bool received_complete(const struct received *received)
{
	return received->calls_of_done == 1 && received->status == 0 && received->next == received->height;
}

void received_compare(const struct received *received, const char *file, int levels, int hundredths, int max)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t width, height, off = 0, worst = 0;
	uint8_t *expected = image_read_whole(test_data(file), &width, &height, &error);
	SUCCEEDS(expected ? 0 : -1, &error, file);
	CHECK(width == received->width && height == received->height, "size of the image");
	for (int64_t i = 0; i < width * height * 3; i++) {
		const int difference = abs(expected[i] - received->rgb[i]);
		off += difference > levels;
		worst = difference > worst ? difference : worst;
	}
	printf(", %lld of %lld values off, the worst by %lld", (long long)off,
	       (long long)(width * height * 3), (long long)worst);
	CHECK(off * 100 <= width * height * 3 * hundredths && worst <= max, file);
	free(expected);
}

void received_forget(struct received *received)
{
	free(received->rgb);
	free(received->latents);
	free(received->calls);
	free(received->ratios);
	*received = (struct received){0};
}
