/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/generate.h"

/* An image in memory, as the callbacks bring it. */
struct received {
	int64_t width, height, next;
	unsigned char *rgb;
	int64_t shape[3];
	float *latents;
	int calls_of_done, status;
	struct smalti_error error;
	bool refuse_rows;
	int64_t steps, branches; /* of a step cache */
	struct smalti_step_call *calls;
	double (*ratios)[SMALTI_STEP_GAPS]; /* NULL: none */
};

/* Submits an image by its own plan, which spells the request out. */
int received_submit(const struct smalti_model *model, struct smalti_batch *batch,
		    struct smalti_request *request, int64_t image, struct received *to,
		    struct smalti_error *error);
bool received_complete(const struct received *received);
/* Compares the pixels with a file under tests/data: how many in a hundred values may be off by more than
 * `levels`, and the most that one may. */
void received_compare(const struct received *received, const char *file, int levels, int hundredths, int max);
void received_forget(struct received *received);
