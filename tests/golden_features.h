/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/safetensors.h"

/* A directory of features, one shard of f16, of the items KIND0, KIND1, … of a file of reference outputs:
 * their tensors .mean, .std [4, h, w] and .text [m, width]. */
struct golden_features {
	const struct smalti_safetensors *file;
	const char *kind;
	double scaling_factor;
	const char *text_model; /* the model of the features, as the directory names it */
	bool beginnings;        /* a second caption, "begin", is the first token of the first, "prompt" */
	int64_t lacking;        /* one item of so many lacks its image; 0: none */
};

int make_golden_features(const char *directory, const struct golden_features *features,
			 struct smalti_error *error);
