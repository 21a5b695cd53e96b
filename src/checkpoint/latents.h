/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Latents [count, channels, height, width], or [channels, height, width] of one image, in a safetensors file
 * (F32, F16, BF16, F64) or an .npy file (checkpoint/npy.h); the contents decide which. The file is mapped:
 * values that are not read cost nothing. */
struct smalti_latents;

struct smalti_latents_info {
	int64_t count, channels, height, width; /* 1 or more each */
	bool raw; /* the "mean" beside a "std", as smalti encode writes them: the VAE's own, not scaled */
};

/* Opens the tensor `key` of a safetensors file; NULL: "latents", else the "mean" of smalti encode, or the
 * only tensor of three or four axes. */
struct smalti_latents *smalti_latents_open(const char *path, const char *key, struct smalti_error *error);
const struct smalti_latents_info *smalti_latents_info(const struct smalti_latents *latents);

/* Reads item `index` as f32 [channels, height, width]. EFORMAT, with the place: a value is not finite or too
 * large for f32. Any thread may call it. */
int smalti_latents_read(const struct smalti_latents *latents, int64_t index, float *planes,
			struct smalti_error *error);

void smalti_latents_close(struct smalti_latents *latents); /* NULL is fine */
SCOPED_RELEASE(struct smalti_latents *, smalti_latents_close)
