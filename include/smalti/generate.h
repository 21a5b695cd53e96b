/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GENERATE_H
#define SMALTI_GENERATE_H

#include <smalti/model.h>

#include <stdbool.h>

/** @file
 * Images from prompts. A batch keeps many requests in flight: their stages overlap, each image is handed
 * over row by row as it is decoded. A request's result depends on the request and the tiling alone, to the
 * last bit: not on the scheduling policy, the number of workers, or what else is in the batch.
 *
 * Threads: any thread may call any of these functions, also on one batch, but for opening and closing it.
 */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** How a prompt is prepared. */
enum smalti_cleaning {
	SMALTI_CLEANING_RAW,   /**< as it stands */
	SMALTI_CLEANING_BASIC, /**< lower case, stripped: what diffusers does without ftfy and bs4 */
	SMALTI_CLEANING_FULL,  /**< diffusers' clean_caption=True */
	SMALTI_CLEANING_STRIP  /**< stripped alone: what PixArt's extraction does */
};

/** What noise is drawn as: the same seed gives unrelated images for each. */
enum smalti_noise { SMALTI_NOISE_F32, SMALTI_NOISE_F16, SMALTI_NOISE_BF16 };

/** Bounds of a request's fields. */
enum {
	SMALTI_SIDE_MIN = 16,
	SMALTI_SIDE_MAX = 1 << 17,
	SMALTI_STEPS_MAX = 1000,
	SMALTI_IMAGES_MAX = 1000000
};

/** One prompt. */
struct smalti_request {
	const char *prompt;
	const char *negative_prompt; /**< NULL: empty */
	int64_t width, height;       /**< pixels, SMALTI_SIDE_MIN to SMALTI_SIDE_MAX; 0: the model's */
	/** Paint at the size of the model's resolution bins whose aspect ratio is nearest, then resize and
	 * crop to the width and height, as diffusers' use_resolution_binning does; else paint at that size.
	 */
	bool resolution_binning;
	uint64_t seed;
	int64_t images;  /**< images of this prompt, from one stream of noise, as diffusers draws them */
	int64_t steps;   /**< 1 to SMALTI_STEPS_MAX */
	double guidance; /**< 1 and less: the negative prompt is not evaluated */
	const char *scheduler; /**< see smalti_scheduler_name(); NULL: the model's own */
	enum smalti_cleaning cleaning;
	enum smalti_noise noise;
	/** Instead of noise: f32 [images, channels, height, width] of the padded latents, multiplied by the
	 * scheduler's initial sigma already; NULL: none. */
	const float *latents;
	int64_t latents_count; /**< floats there */
	/* The tiling; 0: chosen from the size. */
	int64_t tile_tokens; /**< tokens in a band of the transformer */
	int64_t tile_rows;   /**< latent rows in a band of the VAE */
};

/** Defaults: 20 steps, guidance 4.5, seed 0, one image, basic cleaning, f32 noise, the model's size. */
void smalti_request_defaults(struct smalti_request *request);

/** A request resolved against a model: everything that fixes the arithmetic of its images. */
struct smalti_plan;

/** Checks a request and plans its images. A size or tiling of 0 becomes what it stands for: *request is
 * then the same request, spelled out. Strings are copied; `latents` are not, and stay until the last image
 * was submitted. The model outlives the plan. NULL with SMALTI_EINVAL, then *request is untouched. */
struct smalti_plan *smalti_request_resolve(const struct smalti_model *model, struct smalti_request *request,
					   struct smalti_error *error);
/** Images that were submitted keep what they need. NULL is allowed. */
void smalti_plan_free(struct smalti_plan *plan);

/** What a model does not read of a prompt. */
struct smalti_unread {
	char *cut;     /**< its end, prepared, from the word on that has a token too many; NULL: nothing */
	char *unknown; /**< words that the model's list (words.txt in its directory) lacks, "tree, house";
			* NULL: none, or there is no list */
};

/** Looks at a prompt without making anything; frees nothing of *unread before. -1 as for a submission, and
 * when memory is short. */
int smalti_prompt_unread(const struct smalti_model *model, const char *prompt, enum smalti_cleaning cleaning,
			 struct smalti_unread *unread, struct smalti_error *error);
void smalti_unread_free(struct smalti_unread *unread);

/** Receives one image. All functions but `done` may be called on any thread, one at a time per image; any
 * may be NULL but `done`. A non-zero return fails the image with the error that was left. */
struct smalti_image_callbacks {
	void *user;
	/** Rows first … first + count − 1 of the image, in order, RGB, `width` pixels each. */
	int (*rows)(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		    struct smalti_error *error);
	/** The final latents f32 [channels, height, width], in the model's scale, padded size. */
	int (*latents)(void *user, const int64_t shape[3], const float *values, struct smalti_error *error);
	/** The last call for this image, on a thread that is in smalti_batch_submit() or
	 * smalti_batch_wait(): status 0, or -1 with the cause. It must not submit. */
	void (*done)(void *user, int status, const struct smalti_error *error);
};

struct smalti_batch;

struct smalti_batch *smalti_batch_open(struct smalti_model *model, struct smalti_error *error);

/** Inserts the tasks of image `image` (0 … images − 1) of a plan of the batch's model. Blocks, serving
 * `done` calls, while as many images are in flight as memory and workers want. -1 for a request that cannot
 * be made; then `done` is not called. Any thread may submit, also to one batch: they take turns. */
int smalti_batch_submit(struct smalti_batch *batch, struct smalti_plan *plan, int64_t image,
			const struct smalti_image_callbacks *callbacks, struct smalti_error *error);

/** Serves `done` calls until nothing is in flight. Several threads may wait. */
void smalti_batch_wait(struct smalti_batch *batch);

/** What is being done for an image. */
enum smalti_stage { SMALTI_STAGE_TEXT, SMALTI_STAGE_DENOISING, SMALTI_STAGE_DECODING };

/** How far the images in flight are. An image's share is arithmetic, done of all that it takes: equal
 * shares take about equal times, but for the first use of weights, which are read and packed then. */
struct smalti_batch_progress {
	int64_t in_flight;       /**< images whose `done` was not called; 0: the rest says nothing */
	double images;           /**< the sum of their shares, 0 to in_flight */
	enum smalti_stage stage; /**< of the oldest of them */
	int64_t step, steps;     /**< that it is in, from 1 on (0: still at the text), of so many */
};

/** Any thread may ask, at any time while the batch is open; it costs a few locks. */
void smalti_batch_progress(struct smalti_batch *batch, struct smalti_batch_progress *progress);

/** From now on `watch` (NULL: nobody) is told some ten times a second, on the thread that waits in
 * smalti_batch_submit() or smalti_batch_wait(). It must not submit. */
void smalti_batch_set_callback(struct smalti_batch *batch,
			       void (*on_progress)(void *user, const struct smalti_batch_progress *progress),
			       void *user);

/** Everything in flight fails with SMALTI_ECANCELLED as soon as the tasks that run have ended; later
 * submissions are refused with it. Only sets a flag: any thread and a signal handler may call it. */
void smalti_batch_cancel(struct smalti_batch *batch);
/** Waits, then frees. NULL is allowed. */
void smalti_batch_close(struct smalti_batch *batch);

/** Names that a request's `scheduler` may have, NULL past the last. */
const char *smalti_scheduler_name(int index);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
