/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "jobs/queue.h"
#include "smalti/generate.h"

/* An image that is made. */
struct smalti_image_job {
	struct smalti_job job;
	struct smalti_batch *batch;
	struct smalti_plan *plan;
	struct smalti_interpolator *resizer; /* NULL: the image is kept as it is made */
	const struct smalti_text *texts[2];  /* negative (or NULL), prompt */
	struct smalti_image_callbacks receiver;
	int64_t latent_shape[3];
	const float *latents; /* that it begins with; NULL: noise */
	double flops;         /* estimated, but for the texts */
};

struct smalti_batch {
	struct smalti_model *model;
	struct smalti_queue queue;
	struct smalti_texts *texts;
	const char *volatile refuses; /* why; NULL: it takes images */
	void (*on_progress)(void *user, const struct smalti_batch_progress *progress);
	void *user;
};

/* Tells the callbacks of the images, and that of all, how far they are. `batch` for struct smalti_queue. */
void smalti_batch_report(void *batch);
