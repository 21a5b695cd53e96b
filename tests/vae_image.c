/* SPDX-License-Identifier: Apache-2.0 */
#include "vae_image.h"

#include "base/base.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

struct smalti_vae *open_test_vae(struct smalti_session *session, const char *directory)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_options options;
	smalti_vae_defaults(&options);
	options.directory = directory;
	struct smalti_vae *vae = smalti_vae_open(session, &options, &error);
	SUCCEEDS(vae ? 0 : -1, &error, directory);
	return vae;
}

struct vae_image new_vae_image(int64_t height, int64_t width, int64_t size)
{
	struct vae_image image = {.height = height, .width = width, .size = size, .refuse = -1, .cancel = -1};
	image.samples = malloc((size_t)(height * width * 3 * size));
	return image;
}

int take_vae_rows(void *user, int64_t first, int64_t count, const void *rgb, struct smalti_error *error)
{
	struct vae_image *to = user;
	const int64_t row = to->width * 3 * to->size;
	if (first != to->next || first + count > to->height)
		return smalti_fail(error, SMALTI_EINVAL, "rows out of order");
	if (to->refuse >= 0 && first + count > to->refuse)
		return smalti_fail(error, SMALTI_EIO, "refused");
	if (to->cancel >= 0 && first + count > to->cancel)
		smalti_vae_cancel(to->vae);
	memcpy(to->samples + first * row, rgb, (size_t)(count * row));
	to->next = first + count;
	return 0;
}

int give_vae_rows(void *user, int64_t first, int64_t count, float *rgb, struct smalti_error *error)
{
	struct vae_image *from = user;
	const int64_t row = from->width * 3;
	if (first != from->next || first + count > from->height)
		return smalti_fail(error, SMALTI_EINVAL, "rows out of order");
	if (from->refuse >= 0 && first + count > from->refuse)
		return smalti_fail(error, SMALTI_EIO, "refused");
	memcpy(rgb, from->samples + first * row * (int64_t)sizeof(*rgb),
	       (size_t)(count * row) * sizeof(*rgb));
	from->next = first + count;
	return 0;
}

void check_vae_progress(void *user, double share)
{
	struct vae_image *image = user;
	CHECK(share >= image->share && share <= 1, "the share grows");
	image->share = share;
	image->watched++;
}

struct smalti_vae_decoding vae_decoding_of(const float *latents, struct vae_image *to)
{
	static const enum smalti_samples kinds[] = {
	    [1] = SMALTI_SAMPLES_U8, [2] = SMALTI_SAMPLES_U16, [4] = SMALTI_SAMPLES_F32};
	return (struct smalti_vae_decoding){.request = {.height = to->height,
							.width = to->width,
							.user = to,
							.on_progress = check_vae_progress},
					    .latents = latents,
					    .samples = kinds[to->size],
					    .rows = take_vae_rows};
}

struct vae_image decoded_vae_image(struct smalti_vae *vae, const float *latents, int64_t size, bool raw,
				   int64_t tile_rows)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct vae_image found = new_vae_image(8 * VAE_HEIGHT, 8 * VAE_WIDTH, size);
	struct smalti_vae_decoding decoding = vae_decoding_of(latents, &found);
	decoding.raw = raw;
	decoding.request.tile_rows = tile_rows;
	SUCCEEDS(smalti_vae_decode_image(vae, &decoding, &error), &error, "decode");
	CHECK(found.next == found.height, "all rows");
	return found;
}
