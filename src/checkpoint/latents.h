/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Latents [count, channels, height, width], or of one image [channels, height, width], in a safetensors
 * file (F32, F16, BF16, F64) or an .npy file (checkpoint/npy.h), recognised by what it holds. The file is
 * mapped: what is not read costs nothing. */
struct smalti_latents;

struct smalti_latents_info {
	int64_t count, channels, height, width; /* 1 or more each */
	bool raw; /* the "mean" beside a "std", as smalti encode writes them: the VAE's own, not scaled */
};

/* The tensor `key` of a safetensors file; NULL: "latents", else the "mean" of smalti encode, or the only one
 * of three or four axes. */
struct smalti_latents *smalti_latents_open(const char *path, const char *key, struct smalti_error *error);
const struct smalti_latents_info *smalti_latents_info(const struct smalti_latents *latents);

/* Item `index` as f32 [channels, height, width]. EFORMAT, with the place, for a value that is not finite or
 * too large for f32. Any thread. */
int smalti_latents_read(const struct smalti_latents *latents, int64_t index, float *planes,
			struct smalti_error *error);

void smalti_latents_close(struct smalti_latents *latents); /* NULL is fine */
SCOPED_RELEASE(struct smalti_latents *, smalti_latents_close)
