/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/pixart/train.h"
#include "samplers/diffusion_loss.h"

/* The transformer's forward and backward on the reference's cases (tests/data/train/README.md). */
enum { TRAIN_GRAPH_SAMPLES = 3 };

/* A case of the file. */
struct train_graph_case {
	const char *name;
	struct smalti_transformer_config config;
	int samples;
	int64_t height, width, text_rows; /* text_rows: with padding */
	int64_t t[TRAIN_GRAPH_SAMPLES], tokens[TRAIN_GRAPH_SAMPLES];
	double weight[TRAIN_GRAPH_SAMPLES], mse[TRAIN_GRAPH_SAMPLES], vb[TRAIN_GRAPH_SAMPLES], norm;
	const float *x0, *noise, *text, *sides, *ratio; /* the last two: NULL where there are none */
};

/* How a case is computed. */
struct train_graph_plan {
	enum smalti_dtype compute;
	int64_t band;       /* tokens; 0: all */
	int64_t recomputed; /* blocks */
	bool bounded;
	double scale; /* of the loss */
	enum smalti_grain grain;
	const struct smalti_strategy *strategy; /* NULL: none */
	bool forget;                            /* without the gradient of the input */
	const float *gout; /* the output's gradient, of each sample; NULL: that of the loss */
	int64_t value;     /* this value of all parameters' is larger by `change` */
	float change;
};

/* The results, in one array each; gradients one after the other, divided by the loss's scale. */
struct train_graph_outcome {
	int64_t parameters, values, latent;
	int64_t *first;   /* of each parameter, and their end */
	char (*name)[96]; /* their names */
	float *gradients, *out, *gx;
	struct smalti_loss_parts parts[TRAIN_GRAPH_SAMPLES];
	int64_t around; /* in a session that counts: bytes that are there before the samples */
};

struct train_graph_case train_graph_case(const char *name);
/* Returns a tensor of the case; NULL: the file has none. */
const float *train_graph_floats(const char *name, const char *part);
void train_graph_close(void); /* the file */

struct train_graph_outcome train_graph_step(struct smalti_session *on, const struct train_graph_case *c,
					    const struct train_graph_plan *plan);
void train_graph_drop(struct train_graph_outcome *o);
int train_graph_replicas(const struct train_graph_plan *plan);
void *train_graph_room(int64_t count, size_t size);

/* Tells whether a gradient is 0 but for rounding. */
bool train_graph_is_rounding(const char *name);
/* Returns the norm of a's difference from b (NULL: from 0) as one vector, without gradients of rounding
 * alone. */
double train_graph_distance(const struct train_graph_outcome *o, const float *a, const float *b);
void train_graph_losses(const struct train_graph_case *c, const struct train_graph_outcome *o);
/* Checks and counts the file's gradients. */
int train_graph_gradients(const struct train_graph_case *c, const struct train_graph_outcome *o);
bool train_graph_same_bits(const struct train_graph_outcome *a, const struct train_graph_outcome *b);
/* Checks that gradients of ranks, shards and replicas are those of one memory but for rounding. */
void train_graph_near(const struct train_graph_case *c, const struct train_graph_outcome *whole,
		      const struct train_graph_outcome *o, const char *what);

/* The workers; they change no bit. */
struct train_graph_scheduler {
	const char *policy;
	int64_t cpus;
};
enum { TRAIN_GRAPH_SCHEDULERS = 4 };
extern const struct train_graph_scheduler train_graph_schedulers[TRAIN_GRAPH_SCHEDULERS];
