/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "retrieve/files.h"
#include "smalti/retrieve.h"

/* Linear maps of captions' and of images' vectors into one space (docs/retrieve.md). A directory of
 * projections has a file of tensors, and its description, which is written last. An index that was made with
 * them has a copy of the file, and describes them in its own description. */

#define SMALTI_PROJECTIONS_FORMAT "smalti projections"
enum { SMALTI_PROJECTIONS_VERSION = 1, SMALTI_KINDS = 2 };
#define SMALTI_PROJECTIONS_DEFAULTS                                                                          \
	{                                                                                                    \
		.dim = 256, .steps = 1500, .batch = 512, .warmup = 100, .rate = 1e-3, .weight_decay = 0.03,  \
		.held_out = 0.1                                                                              \
	}
extern const char smalti_projections_file[];        /* projections.safetensors */
extern const char smalti_projections_description[]; /* projections.json */

struct smalti_projection {
	int64_t width;              /* of the vectors before projection: smalti_vector_of() */
	const float *weight, *bias; /* [dim, width], [dim] */
	const cJSON *model;         /* the model's description in extract.json */
};

struct smalti_projections {
	int64_t dim;
	const char *caption;                       /* key of the captions in training */
	const char *digest;                        /* of the file of tensors */
	struct smalti_projection of[SMALTI_KINDS]; /* by enum smalti_index_kind */
	struct smalti_safetensors *file;
};

/* Reads a directory's projections; the description, which outlives them, is at `described`. Close them in any
 * case. */
int smalti_projections_read(struct smalti_projections *projections, const cJSON *description,
			    const char *described, const char *directory, const char *remedy,
			    struct smalti_error *error);
/* Opens a directory of projections; *description is for cJSON_Delete(), after the close. */
int smalti_projections_open(struct smalti_projections *projections, const char *directory,
			    cJSON **description, struct smalti_error *error);
void smalti_projections_close(struct smalti_projections *projections);

/* Writes the file of tensors; all or nothing. */
int smalti_projections_write(const struct smalti_projections *projections, const char *directory,
			     struct smalti_error *error);
/* Adds the projections to a description. */
int smalti_projections_describe(const struct smalti_projections *projections, cJSON *description,
				struct smalti_error *error);

/* Makes projected [dim], in double. */
void smalti_projections_apply(const struct smalti_projections *projections, enum smalti_index_kind kind,
			      const double *vector, double *projected);
