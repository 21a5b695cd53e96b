/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/geometry.h"

struct smalti_make_model_options {
	const char *directory; /* made when absent; must not hold any part of a model */
	enum smalti_geometry geometry;
	enum smalti_dtype dtype;
	bool with[SMALTI_COMPONENTS];
	int64_t t5_layers; /* 0: as many as the geometry has */
	int64_t shard_bytes;
	bool hollow; /* all weights are 0, and take no space on the disk */
	/* Called now and then with the bytes of weights that are made; not 0 stops. NULL: not wanted. */
	int (*progress)(void *user, int64_t done, int64_t total);
	void *user;
};

/* Writes a directory in diffusers' layout with weights by formula (bench/fill.h): the wanted components, the
 * embedded model's scheduler and, with the text encoder, its tokenizer. A failure leaves nothing: all is made
 * in a hidden directory inside `directory`, and moved when it is complete on the disk. SMALTI_EINVAL when
 * `directory` has a part of a model, SMALTI_ECANCELLED when stopped. */
int smalti_make_model(const struct smalti_make_model_options *options, struct smalti_error *error);
