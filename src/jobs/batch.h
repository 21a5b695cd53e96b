/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "jobs/queue.h"
#include "smalti/generate.h"

/* An image of a batch. */
struct smalti_image_job {
	struct smalti_job job;
	struct smalti_batch *batch;
	struct smalti_plan *plan;
	struct smalti_interpolator *resizer; /* NULL: the image keeps the size in which it is made */
	const struct smalti_text *texts[2];  /* negative (or NULL), prompt */
	struct smalti_image_callbacks receiver;
	int64_t latent_shape[3];
	const float *latents; /* the first latents; NULL: noise */
	double flops;         /* estimated, without the texts */
	int64_t image;        /* its number in the plan */
	bool apart;           /* a thread inserts its tasks, as a step cache waits in each step */
	pthread_t inserter;   /* that thread */
};

struct smalti_batch {
	struct smalti_model *model;
	struct smalti_queue queue;
	struct smalti_texts *texts;
	int64_t turn;                 /* of the next image; 0: its number */
	const char *volatile refuses; /* the cause; NULL: the batch takes images */
	void (*on_progress)(void *user, const struct smalti_batch_progress *progress);
	void *user;
};

/* Waits until one more image may be active, by the limit of their number. */
void smalti_batch_await_room(struct smalti_batch *batch);
/* Submits like smalti_batch_submit(), but tasks go in the order of `turn`, from 1 on, not of submission. One
 * thread submits all images of the batch. */
int smalti_batch_submit_in_turn(struct smalti_batch *batch, struct smalti_plan *plan, int64_t image,
				const struct smalti_image_callbacks *callbacks, int64_t turn,
				struct smalti_error *error);
/* Cancels active images whose `user` is `unwanted`. That function must not submit, nor wait for images. */
void smalti_batch_drop(struct smalti_batch *batch, bool (*unwanted)(void *user));

/* image_tasks.c */
/* Counts the flops of an image, once its texts are known. */
int smalti_image_estimate(struct smalti_image_job *work, struct smalti_error *error);
/* Inserts the tasks of an image whose job is open, and submits it; with a step cache on another thread. */
void smalti_image_insert(struct smalti_image_job *work);

/* Reports progress to the callbacks of the images and of the batch. `batch` for struct smalti_queue. */
void smalti_batch_report(void *batch);
/* Reports to the callback of an image that it is complete. */
void smalti_batch_report_complete(const struct smalti_image_job *work);
