/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/vae/plan.h"
#include "smalti/generate.h"

struct smalti_plan;

/* The image that a plan's images begin with, in the size that is made. */
struct smalti_plan_image {
	unsigned char *rgb;  /* [height, width, 3] */
	unsigned char *mask; /* [height, width], black where the image is kept, else white; NULL: nowhere */
	float *latent_mask;  /* planes of the latents, 0 where the image is kept */
	struct smalti_vae_plan encoding;
};

/* Checks what a request says of its image, and fills in the strength. */
int smalti_plan_image_check(struct smalti_request *request, struct smalti_error *error);
/* Makes the plan's image, if its request has one: the size that is made is known. It is the request's from
 * then on, which makes the same of it. */
int smalti_plan_image_make(struct smalti_plan *plan, struct smalti_error *error);
void smalti_plan_image_free(struct smalti_plan_image *image); /* NULL is fine */

/* Returns the bytes of the image's own. */
int64_t smalti_plan_image_bytes(const struct smalti_plan *plan);
/* Writes the kept pixels of row `row` over those of a finished image. */
void smalti_plan_image_keep(const struct smalti_plan *plan, int64_t row, unsigned char *rgb);
