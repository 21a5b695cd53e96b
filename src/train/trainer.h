/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/pixart/train.h"
#include "samplers/diffusion_loss.h"
#include "train/data.h"
#include "train/optimizer.h"
#include "train/schedule.h"

/* What counts up in a run, and all that a step depends on besides tiles and data. */
struct smalti_training_state {
	int64_t steps;   /* batches that were computed */
	int64_t updates; /* of them those that changed the parameters */
	int64_t samples;
	struct smalti_loss_scale scale;
};

/* In a band of a sample, where the options name no number: its products read all weights and add to all their
 * gradients, so that smaller bands take longer, and samples are enough to compute side by side. */
enum { SMALTI_TRAINING_TILE_TOKENS = 1024 };

static inline int64_t smalti_training_tile_tokens(const struct smalti_train_options *options)
{
	return options->tile_tokens ? options->tile_tokens : SMALTI_TRAINING_TILE_TOKENS;
}

/* T5's hidden states of the empty text, f32 [tokens, width]; with SMALTI_NULL_TOKENS_CAPTION padded to the
 * full length of captions. */
struct smalti_null_caption {
	float *values; /* NULL: the trainer's tile gets them otherwise */
	int64_t tokens, width;
};

/* The largest samples: what a step takes goes by that. */
struct smalti_step_shape {
	int64_t height, width; /* of the latents with the most tokens */
	int64_t text_tokens;   /* of the longest caption, perhaps another's */
};

/* How the samples of a step are computed: what changes memory and speed, and no bit. */
struct smalti_step_plan {
	int64_t together;               /* samples at a time */
	int64_t recomputed;             /* blocks */
	bool bounded;                   /* layers take turns, so that memory keeps to what was counted */
	struct smalti_step_shape shape; /* that it is for */
	/* At most, of tiles, of the workers' kernels, and of the whole process; 0: they cannot be counted. @{
	 */
	int64_t tiles, scratch, bytes;
	/* @} */
};

/* The transformer that is trained, its optimizer and the average of its weights: tiles between the steps. */
struct smalti_trainer {
	struct smalti_session *session;
	const struct smalti_train_options *options;
	struct smalti_transformer_config config;
	struct smalti_strategy strategy;
	enum smalti_dtype features; /* type of samples' values */
	float scaling_factor;
	struct smalti_task_group *task_group; /* of what stays from step to step */
	struct smalti_parameters *parameters;
	struct smalti_optimizer *optimizer;
	struct smalti_parameters averages; /* with the parameters' names; without a list: there are none */
	struct smalti_dit_train *graph, *average_graph;
	struct smalti_tile *null_caption;
	int64_t null_tokens; /* its rows */
	struct smalti_training_state state;
	struct smalti_step_plan plan; /* of the step, or the evaluation, under way */
};

/* The parameters are as they were made: what gives them values is inserted before or behind. Averages are as
 * the parameters are when this is called. Close it in any case. */
int smalti_trainer_open(struct smalti_trainer *trainer, struct smalti_session *session,
			const struct smalti_train_options *options,
			const struct smalti_transformer_config *config, struct smalti_error *error);
/* How samples are stored, and what a dropped caption is. */
void smalti_trainer_set_data(struct smalti_trainer *trainer, const struct smalti_shard_schema *schema,
			     const struct smalti_null_caption *null_caption);
/* The state before the first step, from the parameters' values. */
int smalti_trainer_begin(struct smalti_trainer *trainer, struct smalti_error *error);
void smalti_trainer_close(struct smalti_trainer *trainer);

/* memory.c
 *
 * Rows of its caption, or of the null caption, that the transformer reads. */
int64_t smalti_sample_text_tokens(const struct smalti_trainer *trainer,
				  const struct smalti_training_sample *sample);
void smalti_step_shape_widen(struct smalti_step_shape *shape, int64_t height, int64_t width,
			     int64_t text_tokens);
struct smalti_step_shape smalti_step_shape_of(const struct smalti_trainer *trainer,
					      const struct smalti_training_sample *samples, int64_t count);

/* Whether what a step takes can be counted: all tiles are in main memory, and no strategy has any twice. */
bool smalti_trainer_counts(const struct smalti_trainer *trainer);
/* What the trainer holds between the steps. */
int64_t smalti_trainer_bytes(const struct smalti_trainer *trainer);
/* As the options say; with SMALTI_RECOMPUTE_AUTO the fastest plan that the session's memory has room for.
 * A plan that is for this shape already stays; a new one begins with zeros.
 * SMALTI_ENOMEM with what it needs, or the one that takes least, where there is no room for it. */
int smalti_step_plan_choose(const struct smalti_trainer *trainer, const struct smalti_step_shape *shape,
			    struct smalti_step_plan *plan, struct smalti_error *error);
/* Sums of gradients that there are at the same time, of `lanes` of a batch, with so many samples at a time.
 */
int64_t smalti_most_lanes(int64_t batch, int64_t lanes, int64_t together);

struct smalti_step_result {
	double loss, mse, vb; /* means over the batch */
	double norm;          /* of the gradient, before clipping */
	double rate, scale;   /* that the step had */
	bool skipped;         /* the gradient was not finite in f16: the parameters are as they were */
	int64_t samples;
	double flops;
	double seconds, update_seconds; /* all of it; of the norm and the update */
};

/* One step with samples[batch], which it frees at the end. step.c */
int smalti_trainer_step(struct smalti_trainer *trainer, struct smalti_training_sample *samples,
			struct smalti_step_result *result, struct smalti_error *error);

/* A batch's items, what of them is not finite, and the first layer that gives such a value, as an error;
 * `sums`: of each parameter's gradient the sum of squares. refuse.c */
int smalti_step_refuse(const struct smalti_trainer *trainer, const struct smalti_training_sample *samples,
		       const struct smalti_loss_parts *parts, const double *sums,
		       const struct smalti_step_result *result, struct smalti_error *error);

/* Mean losses of held-out items at t = 50, 150, …, 950. */
enum { SMALTI_EVALUATED_TIMESTEPS = 10 };
struct smalti_evaluation {
	int64_t items;
	double mse[SMALTI_EVALUATED_TIMESTEPS], vb[SMALTI_EVALUATED_TIMESTEPS];
	double mean_mse, mean_vb;
};

/* Of the parameters, or with `averages` of their averages. evaluate.c */
int smalti_trainer_evaluate(struct smalti_trainer *trainer, struct smalti_training_data *held_out,
			    bool averages, struct smalti_evaluation *evaluation, struct smalti_error *error);

/* A sample at a timestep on its way through the transformer, for step.c and evaluate.c. sample.c */
struct smalti_sample_work {
	const struct smalti_training_sample *sample;
	int64_t timestep;
	uint32_t seed; /* of the noise, behind `skip` words of its stream */
	int64_t skip;
	bool draws;    /* latents are drawn from the posterior, else its mean */
	double weight; /* of the mean square error */
	int replica;   /* that computes it */
	/* The gradient of the loss, times `scale`, of each rank; no gradients: a forward alone. @{ */
	struct smalti_tile *const *const *gradients;
	bool add;
	double scale;
	/* @} */
	struct smalti_loss_parts *parts; /* filled in when the task group has ended */
};
/* That of a step, without gradients. */
struct smalti_sample_work smalti_sample_work_of(const struct smalti_trainer *trainer,
						const struct smalti_training_sample *sample);
int smalti_sample_insert(const struct smalti_trainer *trainer, struct smalti_dit_train *graph,
			 struct smalti_task_group *task_group, const struct smalti_sample_work *work,
			 struct smalti_error *error);

/* Computes a sample's forward alone, to find the first layer that gives something that is not finite: its
 * name, or "" when all is. */
enum { SMALTI_PROBE_NAME = 64 };
int smalti_sample_probe(const struct smalti_trainer *trainer, const struct smalti_sample_work *work,
			char name[SMALTI_PROBE_NAME], struct smalti_error *error);
