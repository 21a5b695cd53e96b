/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/vae.h"

/* The extents of small latents, and of their image. */
enum {
	VAE_HEIGHT = 6,
	VAE_WIDTH = 6,
	VAE_VALUES = 4 * VAE_HEIGHT * VAE_WIDTH,
	VAE_SAMPLES = 64 * VAE_HEIGHT * VAE_WIDTH * 3
};

/* An image that is received, or that is read: [height, width, 3] samples of `size` bytes. */
struct vae_image {
	int64_t height, width, size, next;
	char *samples;
	int watched;
	double share;
	int64_t refuse, cancel; /* from this row on; -1: never */
	struct smalti_vae *vae;
};

/* Opens a VAE; NULL: the embedded model's. */
struct smalti_vae *open_test_vae(struct smalti_session *session, const char *directory);
struct vae_image new_vae_image(int64_t height, int64_t width, int64_t size);
int take_vae_rows(void *user, int64_t first, int64_t count, const void *rgb, struct smalti_error *error);
int give_vae_rows(void *user, int64_t first, int64_t count, float *rgb, struct smalti_error *error);
void check_vae_progress(void *user, double share);
struct smalti_vae_decoding vae_decoding_of(const float *latents, struct vae_image *to);
struct vae_image decoded_vae_image(struct smalti_vae *vae, const float *latents, int64_t size, bool raw,
				   int64_t tile_rows);
