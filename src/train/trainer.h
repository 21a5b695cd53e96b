/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/trained.h"
#include "rt/lost.h"
#include "samplers/diffusion_loss.h"
#include "train/data.h"
#include "train/optimizer.h"
#include "train/schedule.h"

/* The counts of a run, and everything that a step depends on besides tiles and data. */
struct smalti_training_state {
	int64_t steps;   /* batches that were computed */
	int64_t updates; /* batches that changed the parameters */
	int64_t samples;
	struct smalti_loss_scale scale;
};

enum { SMALTI_MIN_BAND = 128, SMALTI_MAX_BAND = 1024, SMALTI_STEP_BANDS = 4 };

/* Returns the tokens in a band of a sample of so many tokens. A band's products read all weights and add to
 * all gradients, so larger bands are faster, up to SMALTI_MAX_BAND; but where a batch has few samples, their
 * bands are what is computed side by side. The rule does not ask the machine, because bits depend on the
 * bands. */
static inline int64_t smalti_training_tile_tokens(const struct smalti_train_options *options, int64_t tokens)
{
	const int64_t bands = (SMALTI_STEP_BANDS + options->batch - 1) / options->batch;
	const int64_t each =
	    smalti_min(smalti_max((tokens + bands - 1) / bands, SMALTI_MIN_BAND), SMALTI_MAX_BAND);
	return options->tile_tokens ? options->tile_tokens : each;
}

/* T5's hidden states of the empty text, f32 [tokens, width]; with SMALTI_NULL_TOKENS_CAPTION padded to the
 * full length of captions. */
struct smalti_null_caption {
	float *values; /* NULL: the trainer's tile gets them in another way */
	int64_t tokens, width;
};

/* The extents of the largest samples, which decide the memory of a step. */
struct smalti_step_shape {
	int64_t height, width; /* of the latents with the most tokens */
	int64_t text_tokens;   /* of the longest caption, perhaps of another sample */
};

/* How the samples of a step are computed. It changes memory and speed, and no bit. */
struct smalti_step_plan {
	int64_t micro_batch; /* samples at a time */
	int64_t recomputed;  /* blocks */
	bool bounded;        /* there are barriers between layers, so that memory stays within the count */
	struct smalti_step_shape shape; /* of which it is the plan */
	/* The most bytes of this process: of tiles in its main memory, of its workers' kernels, and of all;
	 * 0: they are not counted. @{ */
	int64_t tiles, scratch, bytes;
	/* @} */
	/* The most bytes of tiles on the device with the least room left, and those that it has room for. @{
	 */
	int64_t device_tiles, device_room;
	/* @} */
	int64_t on_device[SMALTI_MAX_NODES]; /* such bytes of each device, by its memory; 0: not counted */
	int64_t moving;                      /* bytes of tiles that only devices have, by a strategy */
};

/* A transformer in training, its optimizer and the average of its weights: tiles between the steps. */
struct smalti_trainer {
	struct smalti_session *session;
	const struct smalti_train_options *options;
	struct smalti_transformer_config config;
	struct smalti_strategy strategy;
	enum smalti_dtype features; /* type of samples' values */
	float scaling_factor;
	struct smalti_task_group *task_group; /* of everything that stays from step to step */
	struct smalti_parameters *base; /* what an adapter changes, which is not trained; NULL: no adapter */
	struct smalti_parameters *parameters;
	struct smalti_optimizer *optimizer;
	struct smalti_parameters averages; /* with the parameters' names; no list: there are no averages */
	struct smalti_trained *graph, *average_graph;
	struct smalti_tile *null_caption;
	int64_t null_tokens; /* its rows */
	struct smalti_training_state state;
	struct smalti_step_plan plan; /* of the running step or evaluation */
};

/* Opens a trainer. Parameters and averages have no values yet: the caller inserts the tasks that give them,
 * or calls smalti_trainer_begin(). Close it in any case. */
int smalti_trainer_open(struct smalti_trainer *trainer, struct smalti_session *session,
			const struct smalti_train_options *options,
			const struct smalti_transformer_config *config, struct smalti_error *error);
/* Returns the adapter that the options ask for. */
struct smalti_lora_shape smalti_lora_shape_of(const struct smalti_train_options *options);
/* Sets how samples are stored, and what a dropped caption is. */
void smalti_trainer_set_data(struct smalti_trainer *trainer, const struct smalti_shard_schema *schema,
			     const struct smalti_null_caption *null_caption);
/* Begins the averages with the parameters' values, and waits for both. */
int smalti_trainer_begin(struct smalti_trainer *trainer, struct smalti_error *error);
void smalti_trainer_close(struct smalti_trainer *trainer);

/* Returns the rows of a sample's caption, or of the null caption, that the transformer reads (memory.c). */
int64_t smalti_sample_text_tokens(const struct smalti_trainer *trainer,
				  const struct smalti_training_sample *sample);
void smalti_step_shape_widen(struct smalti_step_shape *shape, int64_t height, int64_t width,
			     int64_t text_tokens);
struct smalti_step_shape smalti_step_shape_of(const struct smalti_trainer *trainer,
					      const struct smalti_training_sample *samples, int64_t count);

/* Returns the bytes of this process's tiles that stay between the steps. */
int64_t smalti_trainer_bytes(const struct smalti_trainer *trainer);
/* Plans a step by the options; with SMALTI_RECOMPUTE_AUTO the fastest that fits the memory of each rank, and
 * of each device. A plan for this shape stays; a new one begins with zeros. SMALTI_ENOMEM with the bytes that
 * it, or the smallest, needs. All ranks call it, and get the same plan but for the bytes. */
int smalti_step_plan_choose(const struct smalti_trainer *trainer, const struct smalti_step_shape *shape,
			    struct smalti_step_plan *plan, struct smalti_error *error);

/* The most bytes of tiles in this rank's main memory during a step. */
struct smalti_step_memory {
	int64_t planned, used; /* planned is 0 if it was not counted */
};

struct smalti_step_result {
	double loss, mse, vb; /* means over the batch */
	double norm;          /* of the gradient, before clipping */
	double rate, scale;   /* of the step */
	bool skipped;         /* the gradient was not finite in f16: the parameters did not change */
	int64_t samples;
	int64_t pixels, caption_tokens; /* of all samples together; pixels: of latents */
	double flops;
	double seconds,
	    update_seconds; /* seconds: of the whole step; update_seconds: of the norm and the update */
	struct smalti_step_memory memory;
	int64_t on_device[SMALTI_MAX_NODES]; /* the plan's */
};

/* Adds gradients to others, so that all places receive as much, and the last sum of each is at its
 * parameter's owner; NULL: there is none. */
void smalti_gradients_add(const struct smalti_parameters *parameters, struct smalti_task_group *task_group,
			  struct smalti_tile *const *from, struct smalti_tile *const *to);
/* Makes a step with samples[batch], which it frees at the end (step.c). */
int smalti_trainer_step(struct smalti_trainer *trainer, struct smalti_training_sample *samples,
			struct smalti_step_result *result, struct smalti_error *error);

/* Names a batch's items, which values are not finite, and the first layer with such a value, as an error;
 * `sums`: of each parameter's gradient the sum of squares (refuse.c). */
int smalti_step_refuse(const struct smalti_trainer *trainer, const struct smalti_training_sample *samples,
		       const struct smalti_loss_parts *parts, const double *sums,
		       const struct smalti_step_result *result, struct smalti_error *error);

/* The mean losses of held-out items at t = 50, 150, …, 950. */
enum { SMALTI_EVALUATED_TIMESTEPS = 10 };
struct smalti_evaluation {
	int64_t items;
	double mse[SMALTI_EVALUATED_TIMESTEPS], vb[SMALTI_EVALUATED_TIMESTEPS];
	double mean_mse, mean_vb;
};

/* Evaluates the parameters, or with `averages` their averages (evaluate.c). */
int smalti_trainer_evaluate(struct smalti_trainer *trainer, struct smalti_training_data *held_out,
			    bool averages, struct smalti_evaluation *evaluation, struct smalti_error *error);

/* A sample at a timestep as the transformer computes it, for step.c and evaluate.c (sample.c). */
struct smalti_sample_work {
	const struct smalti_training_sample *sample;
	int64_t timestep;
	uint32_t seed; /* of the noise, after `skip` words of its stream */
	int64_t skip;
	bool draws;    /* latents are drawn from the posterior, else its mean */
	double weight; /* of the mean square error */
	int replica;   /* the replica that computes it */
	/* The loss's gradient, times `scale`, of each part; NULL: only a forward. @{ */
	struct smalti_tile *const *const *gradients;
	bool add;
	double scale;
	/* @} */
	struct smalti_loss_parts *parts; /* filled in when the task group has ended */
};
/* Returns the work of sample i of a batch, without gradients. */
struct smalti_sample_work smalti_sample_work_of(const struct smalti_trainer *trainer,
						const struct smalti_training_sample *samples, int64_t i);
/* Tells whether this rank needs the values of sample i of a batch. */
bool smalti_sample_is_own(const struct smalti_trainer *trainer, int64_t i);
int smalti_sample_insert(const struct smalti_trainer *trainer, struct smalti_trained *graph,
			 struct smalti_task_group *task_group, const struct smalti_sample_work *work,
			 struct smalti_error *error);

/* Computes only a sample's forward, and finds the first layer with a value that is not finite: its name, or
 * "" if all are finite. */
enum { SMALTI_PROBE_NAME = 64 };
int smalti_sample_probe(const struct smalti_trainer *trainer, const struct smalti_sample_work *work,
			char name[SMALTI_PROBE_NAME], struct smalti_error *error);
