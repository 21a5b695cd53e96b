/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/device_use.h"
#include "smalti/generate.h"

/* Whole images, one after the other, as `smalti generate` makes them except for their files. */
struct smalti_images_result {
	double seconds, least; /* of an image: the median and the fastest */
	double first;          /* of the image before them, which opens nothing but makes all weights */
	double stages[3];      /* medians of the time in each enum smalti_stage, sampled every millisecond */
	int64_t peak;          /* most bytes resident, from the model's opening on; -1: not known */
	int64_t width, height;
	int devices;
	struct smalti_device_use uses[SMALTI_MAX_NODES]; /* of the images after the first */
	char strategy[128];                              /* with the request's final shares; empty: none */
};

/* Measures images. Each gets the request's prompt with another number, so that none finds its text encoded.
 * -1 with an error. */
int smalti_images_measure(const struct smalti_session_options *session,
			  const struct smalti_model_options *model, const struct smalti_request *request,
			  int repeats, struct smalti_images_result *result, struct smalti_error *error);
