/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/features.h>
#include <smalti/model.h>

/** @file
 * Trains a PixArt transformer on features that smalti_extract() has written (docs/training.md). The directory
 * of the run holds its whole state: the same call goes on where another ended, with the same bits.
 */

SMALTI_BEGIN_DECLS

enum smalti_optimizer_kind { SMALTI_OPTIMIZER_ADAMW, SMALTI_OPTIMIZER_CAME };

/** Which parameters share CAME's factors: each for itself, or as PixArt stacks q, k and v. */
enum smalti_came_groups { SMALTI_CAME_GROUPS_FILE, SMALTI_CAME_GROUPS_PIXART };

enum smalti_schedule_kind { SMALTI_SCHEDULE_CONSTANT, SMALTI_SCHEDULE_COSINE };

/** The base rate: as given, or for a batch of 256. */
enum smalti_rate_rule { SMALTI_RATE_GIVEN, SMALTI_RATE_SQRT, SMALTI_RATE_LINEAR };

/** Whether a batch has samples of any shape, or of one. */
enum smalti_bucketing { SMALTI_BUCKET_NONE, SMALTI_BUCKET_SHAPE };

/** What becomes of rows of features that are damaged: they are left out, or end the run. */
enum smalti_damage { SMALTI_DAMAGE_SKIP, SMALTI_DAMAGE_REFUSE };

/** Features of the empty text that stand for a dropped caption: those of its own tokens; or as many rows as
 * the caption has, of those of the empty text padded to the full length, as PixArt's trainer takes them. */
enum smalti_null_tokens { SMALTI_NULL_TOKENS_OWN, SMALTI_NULL_TOKENS_CAPTION };

/** What of a block's activations is kept for the backward pass: all, or its input; or as much as the memory
 * of the session, and of each rank and device, has room for, block by block. */
enum smalti_recomputation { SMALTI_RECOMPUTE_NONE, SMALTI_RECOMPUTE_BLOCK, SMALTI_RECOMPUTE_AUTO };

struct smalti_optimizer_options {
	enum smalti_optimizer_kind kind;
	double rate;
	enum smalti_rate_rule rule;
	enum smalti_schedule_kind schedule;
	int64_t warmup;     /**< steps */
	double betas[3];    /**< AdamW: the first two */
	double epsilons[2]; /**< AdamW: the first */
	double weight_decay;
	double limit; /**< CAME's, of the root mean square of an update */
	enum smalti_came_groups groups;
	double clip; /**< most of the gradient's norm; 0: any */
};

/** Of f16. */
struct smalti_loss_scale_options {
	double initial, growth, backoff;
	int64_t interval; /**< good steps before it grows */
};

/** An adapter that is trained instead of the transformer, which stays as it is (docs/adapters.md): low-rank
 * changes of its matrices, A drawn from N(0, 1/rank²) and B 0 at first. */
struct smalti_lora_training {
	int64_t rank; /**< 0: the transformer itself is trained */
	double alpha; /**< the changes are multiplied by alpha / rank; 0: alpha is the rank */
	/** The matrices that change: "attention", "all" that PixArt's script has, or last parts of their
	 * names with commas between, such as "to_q,to_v,ff.net.2". */
	const char *targets;
};

/** What to train on. */
struct smalti_training_data_options {
	const char *const *directories; /**< of features */
	int64_t directory_count;
	int caption_count;                                  /**< 0: all captions of the features */
	const char *captions[SMALTI_FEATURES_CAPTIONS_MAX]; /**< their keys */
	double weights[SMALTI_FEATURES_CAPTIONS_MAX]; /**< how often each is taken, relative to the others */
	double drop; /**< probability that a caption is replaced by the empty one's */
	enum smalti_null_tokens null_tokens;
	bool mean_latents; /**< take the posterior's mean, else a sample of it */
	int64_t buffer;    /**< rows that the order draws from; 0: 1024 */
	int64_t prefetch;  /**< rows that are read ahead; 0: a batch */
	enum smalti_bucketing bucketing;
	enum smalti_damage damage;
};

/** Images that are generated from the run's weights, or their average, while it trains, by the model's other
 * components: RUN/samples/step-N/K.png of prompt K, from 1. They have the run's seed and change no bit of it.
 */
struct smalti_train_samples {
	const char *const *prompts;
	int64_t count; /**< 0: no images */
	int64_t every; /**< steps; 0: at the beginning and the end. A checkpoint is written then, too */
	int64_t width, height; /**< pixels; 0: the model's */
	int64_t steps;         /**< of denoising */
};

/** Strings are the caller's until the end of smalti_train(). */
struct smalti_train_options {
	struct smalti_training_data_options data;
	const char *output; /**< directory of the run; created, or resumed */
	struct smalti_model_options
	    model; /**< its transformer is trained; the text encoder encodes the empty caption */
	const char
	    *initial; /**< configuration of a transformer to train from scratch; NULL: the model's is tuned */
	struct smalti_lora_training lora;
	uint64_t seed;
	int64_t steps; /**< to make in all */
	int64_t batch; /**< samples of a step */
	int64_t lanes; /**< sums that the gradients of a step are added to; at most `batch` are used */
	int64_t micro; /**< samples that are computed at a time; changes no bit; 0: chosen */
	enum smalti_recomputation recomputation;
	/** Tokens in a tile of the transformer. 0: 1024, or a sample's tokens times `batch` / 4 if that is
	 * less, but 128 at least. */
	int64_t tile_tokens;
	/** How a step is spread over the CPUs and devices: "data", "patch", "ring" or a hybrid
	 * (docs/training.md). NULL: the policy places each task. */
	const char *strategy;
	const char *shares;  /**< with a strategy: of the CPUs and of each device, "0:1:2"; NULL: the devices'
				are equal */
	bool fixed_variance; /**< the loss has no part that learns the variance */
	double min_snr;      /**< γ of the weights of the loss; 0: all 1 */
	struct smalti_optimizer_options optimizer;
	double ema; /**< decay of the average of weights; 0: none */
	struct smalti_loss_scale_options loss_scale;
	int64_t save_every;     /**< steps; 0: only at the end */
	int64_t keep;           /**< checkpoints that stay; 0: all */
	const char *held_out;   /**< directory of features to evaluate on; NULL: none */
	int64_t evaluate_every; /**< steps; 0: at the beginning and the end */
	int64_t held_out_items; /**< of its first complete ones; 0: all */
	struct smalti_train_samples samples;
	bool allow_change; /**< go on with other options or data than the run was begun with */
};

void smalti_train_defaults(struct smalti_train_options *options);

/** Where a run is. */
struct smalti_train_progress {
	int64_t step, steps;     /**< made, of all */
	int64_t epoch;           /**< that the last batch ended in */
	double loss, norm, rate; /**< of the last step of this call */
	bool skipped;            /**< it changed nothing: its gradient was not finite, in f16 */
	const char *note;        /**< a line about something else that has happened; NULL: this is a step */
};

enum smalti_train_action {
	SMALTI_TRAIN_CONTINUE,
	SMALTI_TRAIN_STOP /**< write a checkpoint after this step, and return */
};

/** Called on the calling thread after every step, and with notes. A request to stop cannot be withdrawn. */
typedef enum smalti_train_action smalti_train_callback(void *user,
						       const struct smalti_train_progress *progress);

struct smalti_train_result {
	struct smalti_train_progress progress;
	int64_t made;            /**< steps of this call */
	int64_t skipped;         /**< of them those that changed nothing */
	int64_t damaged;         /**< rows of features that were left out, since the run was begun */
	bool stopped;            /**< by the callback, before all steps were made */
	double mse, vb;          /**< of the last evaluation of this call; NaN: there was none */
	struct smalti_error log; /**< why RUN/log.jsonl lacks lines; SMALTI_OK: it has all */
};

/** Trains until all steps are made, or the callback ends it; the last checkpoint is then that of the last
 * step. -1 with SMALTI_EINVAL (options; another run's directory), SMALTI_ECORRUPT (a loss or a gradient that
 * is not finite; a damaged checkpoint), SMALTI_EIO, SMALTI_EFORMAT, SMALTI_EUNSUPPORTED, SMALTI_ENOMEM: what
 * was saved stays. One at a time in a session. */
int smalti_train(struct smalti_session *session, const struct smalti_train_options *options,
		 smalti_train_callback *on_progress, void *user, struct smalti_train_result *result,
		 struct smalti_error *error);

SMALTI_END_DECLS
