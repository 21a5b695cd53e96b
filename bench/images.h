/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/device_use.h"
#include "smalti/generate.h"

/* Whole images, one after the other, as `smalti generate` makes them but for their files. */
struct smalti_images_result {
	double seconds, least; /* of an image: the median and the quickest */
	double first;          /* of the one before them, which opens nothing but makes all weights */
	double stages[3]; /* medians of the time in each enum smalti_stage, seen a thousand times a second */
	int64_t peak;     /* bytes resident at most, from the model's opening on; -1: not known */
	int64_t width, height;
	int devices;
	struct smalti_device_use uses[SMALTI_MAX_NODES]; /* of the images after the first */
	char strategy[128]; /* with shares, as the request's became; empty: none */
};

/* The request's prompt gets a number that changes from image to image, so that none finds its text
 * encoded. -1 with an error. */
int smalti_images_measure(const struct smalti_session_options *session,
			  const struct smalti_model_options *model, const struct smalti_request *request,
			  int repeats, struct smalti_images_result *result, struct smalti_error *error);
