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
	bool hollow; /* all weights are 0, and take no place on the disk */
	/* How many bytes of weights are made, now and then; not 0 stops. NULL: nobody asks. */
	int (*progress)(void *user, int64_t done, int64_t total);
	void *user;
};

/* Writes a directory in diffusers' layout whose weights are by formula (bench/fill.h): the components asked
 * for, the embedded model's scheduler and, with the text encoder, its tokenizer. On failure nothing is left
 * of it: everything is made in a hidden directory inside `directory` and put in place when all of it is on
 * the disk. SMALTI_EINVAL when `directory` holds a part of a model, SMALTI_ECANCELLED when stopped. */
int smalti_make_model(const struct smalti_make_model_options *options, struct smalti_error *error);
