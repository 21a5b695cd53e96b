/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/model.h>

#include <stdbool.h>

/** @file
 * Generates images from prompts. A batch processes many requests at the same time: their stages overlap, and
 * each image is passed to its callback row by row as it is decoded. The request and its tiling determine
 * every bit of an image; the scheduling policy, the number of workers and other requests do not change it.
 *
 * Threads: any thread may call these functions, several threads also on the same batch; only one may open and
 * close it.
 */

SMALTI_BEGIN_DECLS

/** How a prompt is preprocessed. */
enum smalti_cleaning {
	SMALTI_CLEANING_RAW,   /**< unchanged */
	SMALTI_CLEANING_BASIC, /**< lower case, surrounding spaces removed: as diffusers without ftfy and bs4
				*/
	SMALTI_CLEANING_FULL,  /**< diffusers' clean_caption=True */
	SMALTI_CLEANING_STRIP  /**< surrounding spaces removed: as PixArt's extraction */
};

/** Which latents of an image that a request begins with: drawn ones, as diffusers does, or their means. */
enum smalti_posterior { SMALTI_POSTERIOR_SAMPLE, SMALTI_POSTERIOR_MEAN };

/** The data type in which noise is drawn. The same seed gives unrelated images for each type. */
enum smalti_noise { SMALTI_NOISE_F32, SMALTI_NOISE_F16, SMALTI_NOISE_BF16 };

/** What a task of the transformer is, for a band of tokens: one operation; a norm with its projections, or
 * what follows up to the MLP; a whole block, where one band is all; or as much of a pass through all blocks
 * as a task can hold. By default the operations that are large enough to be tasks are, and others are joined.
 * It changes no bit of an image. */
enum smalti_grain {
	SMALTI_GRAIN_AUTO,
	SMALTI_GRAIN_OPERATION,
	SMALTI_GRAIN_HALF_BLOCK,
	SMALTI_GRAIN_BLOCK,
	SMALTI_GRAIN_PASS
};

/** Bounds of a request's fields. */
enum {
	SMALTI_SIDE_MIN = 16,
	SMALTI_SIDE_MAX = 1 << 17,
	SMALTI_STEPS_MAX = 1000,
	SMALTI_IMAGES_MAX = 1000000,
	SMALTI_PATCHES_MAX = 1024
};

/** One prompt. */
struct smalti_request {
	const char *prompt;
	const char *negative_prompt; /**< NULL: empty */
	int64_t width, height;       /**< pixels, SMALTI_SIDE_MIN to SMALTI_SIDE_MAX; 0: the model's */
	/** Generate at the model's resolution bin with the nearest aspect ratio, then resize and crop to the
	 * width and height, as diffusers' use_resolution_binning does. Otherwise the size is used as it is.
	 */
	bool resolution_binning;
	uint64_t seed;
	int64_t images;  /**< number of images, drawn from one stream of noise as in diffusers */
	int64_t steps;   /**< 1 to SMALTI_STEPS_MAX */
	double guidance; /**< classifier-free guidance scale; 1 or less: no guidance, the negative prompt is
			    not used */
	double eta; /**< of the scheduler "ddim": the share of noise that its steps add, 0 to 1; 0 for others
		     */
	const char *scheduler; /**< see smalti_scheduler_name(); NULL: the model's own */
	enum smalti_cleaning cleaning;
	enum smalti_noise noise;
	/** LoRA adapters of this request alone, "PATH[:WEIGHT]" with commas between several; they are not
	 * merged into the model's weights (docs/adapters.md). NULL: none. */
	const char *lora;
	/** Skips most of the transformer in steps that change little (docs/step-cache.md): "bound:X", if the
	 * error of a call is by the model's table at most X of its last output's norm, or "first-block:X", if
	 * the first block's change differs at most by X from then. "calibration" skips nothing and measures
	 * a table. Not over ranks, and with exact strategies only. NULL: every step is computed. */
	const char *step_cache;
	bool step_cache_checks; /**< also compute what is skipped, and report the error */
	/** Instead of noise: f32 [images, channels, height, width] of the padded latents, already multiplied
	 * by the scheduler's initial sigma; NULL: draw noise. */
	const float *latents;
	int64_t latents_count; /**< number of floats in latents */
	/** Image to image: begin with this image and noise, and take the last steps. RGB, [image_height,
	 * image_width, 3] of 8 bits; in another size it is resized to the width and height (Lanczos, as
	 * Pillow does), which have to be multiples of the model's. NULL: begin with noise or latents. */
	const unsigned char *image;
	int64_t image_width, image_height;
	/** The share of the steps that are taken, up to 1; 0: 0.8, or 1 with a mask. More changes more. */
	double strength;
	/** Inpainting: where this mask, [mask_height, mask_width] of 8 bits, is below 128, the image is
	 * kept, up to what the VAE changes. It is resized like the image. NULL: repaint everything. */
	const unsigned char *mask;
	int64_t mask_width, mask_height;
	bool keep_original; /**< where the mask keeps the image, its own pixels are in the result */
	enum smalti_posterior posterior;
	/* The tiling; 0: chosen from the size. */
	int64_t tile_tokens;     /**< tokens per tile of the transformer */
	int64_t tile_rows;       /**< latent rows per tile of the VAE */
	enum smalti_grain grain; /**< of the transformer's tasks */
	/** How the tokens of the transformer are distributed: "2:1:1", the shares of the CPUs and of each
	 * device in turn, as numbers of 0 or more; "auto": the devices' by their measured speed. A tile then
	 * stays with its owner. "1:1:1,2:1:1@8" cuts the tokens of an exact strategy again from step 8 on.
	 * NULL: the policy chooses, or all devices get the same with a strategy. */
	const char *shares;
	/** How the transformer is spread over devices, such as "ulysses" or "hybrid:cfg2.ring4"
	 * (docs/strategies.md); "auto": the exact one that should be fastest. NULL: "patch" with shares, else
	 * the policy places each task. */
	const char *strategy;
	int64_t patches; /**< of a pipeline, 0: as many as stages */
	int64_t warmup;  /**< synchronous passes at first, where a strategy reads older keys; 0: one */
};

/** Defaults: 20 steps, guidance 4.5, seed 0, one image, basic cleaning, f32 noise, the model's size. */
void smalti_request_defaults(struct smalti_request *request);

/** A request resolved against a model: everything that fixes the arithmetic of its images. */
struct smalti_plan;

/** Checks a request and plans its images. A size, tiling or strength of 0 becomes what it stands for:
 * *request is then the same request, spelled out. Strings are copied, and so are `image` and `mask` in
 * the size that is made; `latents` are not, and stay until the last image was submitted. The model outlives
 * the plan. NULL with SMALTI_EINVAL, then *request is untouched. */
struct smalti_plan *smalti_request_resolve(const struct smalti_model *model, struct smalti_request *request,
					   struct smalti_error *error);
/** What the request's strategy and shares became, NULL where there are none: those that the same bits can be
 * asked for with. "auto" is a name and numbers here. They are the plan's. @{ */
const char *smalti_plan_strategy(const struct smalti_plan *plan);
const char *smalti_plan_shares(const struct smalti_plan *plan);
/** @} */

/** The digest of the model with the request's own adapters, as struct smalti_model_info has it; NULL: it has
 * none. It is the plan's. */
const char *smalti_plan_lora(const struct smalti_plan *plan);

/** What the request's step cache is in an image's metadata: "bound:0.04 of 0123456789abcdef", the digest of
 * its table; NULL: there is none. It is the plan's. */
const char *smalti_plan_step_cache(const struct smalti_plan *plan);

/** What a place, the CPUs with main memory or a device, bears of the last pass of an image's denoising. Bytes
 * are those of docs/strategies.md; weights and captions, which come to it once, are not in what it receives.
 */
struct smalti_place_load {
	char name[64];
	double flops; /**< floating-point operations */
	/** Bytes that come to it in a pass behind the warm-up: other tokens' keys and values; queries and
	 * results of heads (ulysses); inputs and sums of shards (tensor); bands that go to their next stage,
	 * latents and noise predictions; the modulation. @{ */
	double keys, heads, sums, stream, modulation;
	/** @} */
	/* What it holds, the most of any pass, if the tasks of a layer run in any order. */
	double weights;     /**< bytes, as it holds them */
	double activations; /**< bytes of what it has made */
	double buffers;     /**< bytes of what it has of other places at the same time */
};
/** The places of the plan's session; 1, any place, for a plan without a strategy. */
int smalti_plan_place_count(const struct smalti_plan *plan);
/** What place 0 … count − 1 bears. -1 without memory. */
int smalti_plan_load(const struct smalti_plan *plan, int place, struct smalti_place_load *load,
		     struct smalti_error *error);

/** Bytes that come to a place, by kind; as struct smalti_place_load has them, and the rows at the borders of
 * a decoding's bands. In a decoding the sums are its statistics. */
struct smalti_place_bytes {
	double keys, heads, sums, stream, modulation, halo;
};
/** What came to a place of an image that a strategy spreads: what its tasks read that was not there. */
struct smalti_transfer_report {
	char name[64];
	struct smalti_place_bytes planned;  /**< of the last pass, counted before it: docs/strategies.md */
	struct smalti_place_bytes pass;     /**< in the last pass */
	struct smalti_place_bytes decoding; /**< behind the last pass */
	double weights;                     /**< bytes of weights that came for this image */
};

/** Images that were submitted keep what they need. NULL is allowed. */
/** The shape of an image's latents: channels, height, width. */
void smalti_plan_latents(const struct smalti_plan *plan, int64_t shape[3]);

void smalti_plan_free(struct smalti_plan *plan);

/** The parts of a prompt that a model ignores. */
struct smalti_unread {
	char *truncated; /**< the truncated end of the preprocessed prompt; NULL: nothing was truncated */
	char *unknown;   /**< words that the model's list (words.txt in its directory) lacks, "tree, house";
			  * NULL: none, or there is no list */
};

/** Tokenizes a prompt and reports what the model would ignore. Does not free the previous contents of
 * *unread. -1 as for a submission, and when memory is short. */
int smalti_prompt_unread(const struct smalti_model *model, const char *prompt, enum smalti_cleaning cleaning,
			 struct smalti_unread *unread, struct smalti_error *error);
void smalti_unread_free(struct smalti_unread *unread);

/** What a step cache did with a call of the transformer, which is a step of one branch. */
struct smalti_step_call {
	bool skipped;
	double value; /**< what was compared with the threshold; NAN: nothing */
	double error; /**< of a skipped call that is checked: of its output, by the norm of the last output
			 that was computed, as a bound is; else NAN */
};
enum { SMALTI_STEP_GAPS = 3 };
/** What a step cache did in an image. */
struct smalti_step_report {
	int64_t steps, branches; /**< branches: without the prompt, and with it; or with it alone */
	const struct smalti_step_call *calls;     /**< [steps, branches] */
	const double (*ratios)[SMALTI_STEP_GAPS]; /**< [steps], of a calibration; else NULL */
};

/** A text as the transformer reads it: T5's last hidden states, without padding. */
struct smalti_text_states {
	int64_t tokens; /**< with the end mark, truncated to the model's most */
	int64_t width;  /**< of a token's states */
	int32_t *ids;   /**< [tokens] */
	float *values;  /**< [tokens, width] */
};

/** Encodes `count` texts by the model's text encoder, in its precision, and fills states[0 … count − 1]; free
 * each by smalti_text_states_free(). Which texts are encoded together changes no bit. -1 with SMALTI_EINVAL,
 * SMALTI_ENOMEM, …: then all are empty. */
int smalti_text_encode(struct smalti_model *model, const char *const *texts, int64_t count,
		       enum smalti_cleaning cleaning, struct smalti_text_states *states,
		       struct smalti_error *error);
void smalti_text_states_free(struct smalti_text_states *states); /**< makes it empty */

struct smalti_batch;
struct smalti_batch_progress;

/** Callbacks that receive one image. Only `done` must not be NULL. All but `done` and `progress` are called
 * on any thread, one at a time per image; if one returns non-zero, the image fails with the error that it
 * set. */
struct smalti_image_callbacks {
	void *user;
	/** Rows first … first + count − 1 of the image, in order, RGB, `width` pixels each. */
	int (*rows)(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		    struct smalti_error *error);
	/** The final latents f32 [channels, height, width], in the model's scale, padded size. */
	int (*latents)(void *user, const int64_t shape[3], const float *values, struct smalti_error *error);
	/** What the step cache did, before the first rows and latents; not without one. */
	void (*steps)(void *user, const struct smalti_step_report *report);
	/** How far the image is: `active` is 1, `images` its completed fraction. About ten times per second,
	 * and once before `done` of an image that is complete, on the thread that waits in
	 * smalti_batch_submit() or smalti_batch_wait(). It must not call the batch's functions. */
	void (*progress)(void *user, const struct smalti_batch_progress *progress);
	/** For each place in turn, before `done`, what came to it; not where the policy places the tasks. */
	void (*place)(void *user, const struct smalti_transfer_report *report);
	/** The last call for this image, on a thread that is in smalti_batch_submit() or
	 * smalti_batch_wait(): status 0, or -1 with the cause. It must not submit. */
	void (*done)(void *user, int status, const struct smalti_error *error);
};

struct smalti_batch *smalti_batch_open(struct smalti_model *model, struct smalti_error *error);

/** Inserts the tasks of image `image` (0 … images − 1) of a plan of the batch's model. Blocks while the
 * submitted images fill the memory or the workers, and calls `done` of completed images meanwhile. -1 for a
 * request that cannot be made; then `done` is not called. Any thread may submit, also to one batch: they take
 * turns. */
int smalti_batch_submit(struct smalti_batch *batch, struct smalti_plan *plan, int64_t image,
			const struct smalti_image_callbacks *callbacks, struct smalti_error *error);

/** Waits until all submitted images are complete and their `done` was called. Several threads may wait. */
void smalti_batch_wait(struct smalti_batch *batch);

/** The stage that an image is in. */
enum smalti_stage { SMALTI_STAGE_TEXT, SMALTI_STAGE_DENOISING, SMALTI_STAGE_DECODING };

/** Progress of the submitted images. The completed fraction of an image is measured in floating-point
 * operations, so equal fractions take about equal time, except at the first use of weights, which are then
 * read and packed. */
struct smalti_batch_progress {
	int64_t active; /**< images whose `done` was not called yet; if 0, the other fields are undefined */
	double images;  /**< sum of their completed fractions, 0 to active */
	enum smalti_stage stage; /**< stage of the oldest of them */
	int64_t step, steps; /**< its current step, from 1 (0: still encoding text), and the number of steps,
			      * each with one pass through the transformer: Heun's count as two */
};

/** Any thread may call it while the batch is open; it is cheap. */
void smalti_batch_progress(struct smalti_batch *batch, struct smalti_batch_progress *progress);

/** Sets the progress callback (NULL: none). It is called about ten times per second on the thread that waits
 * in smalti_batch_submit() or smalti_batch_wait(), and must not submit. */
void smalti_batch_set_callback(struct smalti_batch *batch,
			       void (*on_progress)(void *user, const struct smalti_batch_progress *progress),
			       void *user);

/** Cancels all submitted images: they fail with SMALTI_ECANCELLED as soon as the running tasks have ended, as
 * do later submissions. Only sets a flag: any thread and a signal handler may call it. */
void smalti_batch_cancel(struct smalti_batch *batch);
/** Waits, then frees. NULL is allowed. */
void smalti_batch_close(struct smalti_batch *batch);

/** The name of supported scheduler number `index`; NULL past the last. */
const char *smalti_scheduler_name(int index);

SMALTI_END_DECLS
