/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/weight_forms.h"
#include "graphs/weights.h"

/* Weights as graphs/weights.c, weight_layers.c and trained_weights.c know them. */

struct smalti_weight {
	struct smalti_weights *weights;
	struct smalti_weight_source source;
	struct smalti_tile_forms forms;
	bool raw;                                      /* stays as the file has it */
	bool fixed;                                    /* never becomes raw */
	bool slice;                                    /* part of another weight */
	void *host;                                    /* owned memory of part[0], if it is not in the file */
	struct smalti_tile *tile;                      /* of the forms, */
	struct smalti_tile *part[SMALTI_WEIGHT_PARTS]; /* or of the parts */
	int64_t parameter[SMALTI_WEIGHT_PARTS];        /* in training: each part's */
	struct smalti_weight *next;
};

/* Returns the bytes of the form that CPUs compute with. */
int64_t smalti_weight_made_bytes(const struct smalti_weight *weight);
/* Adds a part that is a parameter. */
void smalti_weight_add_parameter(struct smalti_weight *weight, const char *name);
/* Makes part `index` the parameter that begins at row or column `first` of that of another weight. */
void smalti_weight_take_parameter(struct smalti_weight *weight, const struct smalti_weight *of, int index,
				  int64_t first);
/* Returns the tile of part `index` that is read within a step. */
struct smalti_tile *smalti_weight_step_part(const struct smalti_weight *weight, int index);
