/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_GENERATE_LATENTS_H
#define SMALTI_CLI_GENERATE_LATENTS_H

#include "smalti/generate.h"

/* Latents to begin with, f32 [images, channels, height, width]. */
struct smalti_start {
	float *values;
	int64_t shape[4], count;
	char digest[17]; /* of the values, hexadecimal */
};

/* All latents of a file (checkpoint/latents.h). */
int smalti_start_read(struct smalti_start *start, const char *path, struct smalti_error *error);
/* Begins the request with them: its size follows them if it has none, else all four axes must fit. */
int smalti_start_apply(const struct smalti_start *start, const struct smalti_model_info *model,
		       struct smalti_request *request, struct smalti_error *error);
void smalti_start_free(struct smalti_start *start);

#endif
