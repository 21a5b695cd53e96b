/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/denoiser.h"
#include "graphs/layers/tape.h"
#include "graphs/parameters.h"
#include "graphs/trained.h"

/* What the files graphs/trained*.c and an architecture share: a denoiser whose weights are parameters, and a
 * sample's pass through it. */
struct smalti_trained {
	const struct smalti_trained_functions *functions;
	const struct smalti_parameters *parameters;
	struct smalti_denoiser *denoiser;
	enum smalti_dtype compute;
};

struct smalti_trained_pass {
	struct smalti_trained *trained;
	struct smalti_trained_sample sample;
	struct smalti_tape tape;
	void *own;                    /* the architecture's */
	int *place;                   /* of each part: a rank's shards follow each other */
	struct smalti_value *patches; /* of each band: [*, in_channels·patch²] */
	struct smalti_value *z; /* of each layer and band the stream in front of it; then behind the last */
	struct smalti_value *v; /* of each band: the result [*, patch²·out_channels] */
	struct smalti_tape_mark *mark; /* where each layer begins, then what is behind the last */
};

/* An architecture, as training sees it. */
struct smalti_trained_functions {
	/* Opens the denoiser for images; without a task group it is only checked that all tensors are there.
	 */
	struct smalti_denoiser *(*load)(struct smalti_task_group *task_group,
					const struct smalti_transformer_config *config,
					const struct smalti_checkpoint *checkpoint, enum smalti_dtype compute,
					struct smalti_error *error);
	/* Makes the denoiser of weights, which it owns, even after an error. */
	struct smalti_denoiser *(*make)(struct smalti_weights *weights,
					const struct smalti_transformer_config *config,
					const struct smalti_strategy *strategy, enum smalti_dtype compute,
					struct smalti_error *error);
	/* Tells whether a parameter depends on the timestep or the caption, and on no token. */
	bool (*is_condition)(const char *name);
	/* Returns the columns of the widest activation. */
	int64_t (*widest)(const struct smalti_denoiser *denoiser);
	/* Opens and closes a pass: `own`. -1 with an error. @{ */
	int (*open)(struct smalti_trained_pass *pass, struct smalti_error *error);
	void (*close)(struct smalti_trained_pass *pass);
	/* @} */
	/* Inserts all that is in front of the first layer: the conditions, and of each band `patches`, by
	 * smalti_trained_patches(), and z. */
	void (*begin)(struct smalti_trained_pass *pass);
	/* Inserts a layer: z [bands] holds what is in front of it, and receives what is behind it; without
	 * tiles if it is the `last`. */
	void (*layer)(struct smalti_trained_pass *pass, int64_t layer, bool last, struct smalti_value *z);
	/* Inserts what is behind the last layer: v of each band. */
	void (*end)(struct smalti_trained_pass *pass);
};

/* Returns the stream in front of a layer, of each band. */
static inline struct smalti_value *smalti_trained_stream(const struct smalti_trained_pass *pass,
							 int64_t layer)
{
	return pass->z + layer * pass->sample.tokens->partition.bands;
}
/* Places the following tasks at a band's home. */
void smalti_trained_go_home(struct smalti_trained_pass *pass, int64_t band);

/* Inserts a sample's forward; `keeps_all`: nothing is released before the pass. */
struct smalti_trained_pass *smalti_trained_pass_forward(struct smalti_trained *trained,
							struct smalti_task_group *task_group,
							const struct smalti_trained_sample *sample,
							bool keeps_all, struct smalti_tile **out);

/* Between planes and tokens (trained_planes.c). */

/* Makes a band's patches of the sample's planes, where tasks run. */
struct smalti_value smalti_trained_patches(struct smalti_trained_pass *pass, int64_t band);
/* Returns a new tile at the first part: the results as planes. */
struct smalti_tile *smalti_trained_planes(struct smalti_trained_pass *pass);
/* Gives the results the gradients that their planes have. */
void smalti_trained_begin_gradients(struct smalti_trained_pass *pass, struct smalti_tile *gout);
/* Writes the gradient of the sample's planes, from that of the patches. */
void smalti_trained_planes_gradient(struct smalti_trained_pass *pass);
