/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "base/set.h"
#include "retrieve/projections.h"
#include "retrieve/whitening.h"

/* The pairs that projections are trained on: of each item a caption's vector and an image's, in a file
 * without a name. Those trained on are whitened by their own moments; held-out ones do not change. */
struct smalti_projection_data {
	int file;
	int64_t count;               /* rows of the file: a caption's vector, then an image's, f32 */
	int64_t *trained, *held_out; /* their rows */
	int64_t trained_count, held_out_count;
	int64_t width[SMALTI_KINDS];
	cJSON *model[SMALTI_KINDS];
	char *caption;
	struct smalti_vector_moments moments[SMALTI_KINDS];
	struct smalti_whitening whitening[SMALTI_KINDS];
	struct smalti_set captions; /* held-out captions, by their tokens */
	double *vector;             /* of both kinds together */
	float *row;
};

/* Reads all features; the file lies in the options' output. Close it in any case. */
int smalti_projection_data_open(struct smalti_projection_data *data,
				const struct smalti_projections_options *options,
				struct smalti_projections_progress *progress, struct smalti_error *error);
void smalti_projection_data_close(struct smalti_projection_data *data);

/* Reads a row of the file, [width of captions + width of images]. */
int smalti_projection_data_row(const struct smalti_projection_data *data, int64_t row, float *values,
			       struct smalti_error *error);
