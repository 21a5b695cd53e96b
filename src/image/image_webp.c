/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_decoder.h"

#include <webp/decode.h>

/* A chunk: its name, its length in 32 bits, so many bytes, one of padding where they are odd. The container
 * is one, too: "RIFF", a length, "WEBP", chunks. Pixels: RGB out of ARGB, which the lossless decoder keeps
 * whole. */
enum { CONTAINER_BYTES = 12, CHUNK_BYTES = 8, PIXEL_BYTES = 3 + 4 };

struct decoder {
	uint8_t *file; /* until the pixels are there */
	size_t file_bytes;
	uint8_t *pixels;
};

static int refuse(const struct smalti_image_reader *image, VP8StatusCode status, int64_t row,
		  struct smalti_error *error)
{
	switch (status) {
	case VP8_STATUS_OUT_OF_MEMORY:
		return smalti_fail(error, SMALTI_ENOMEM, "%s: no memory for the WebP decoder", image->path);
	case VP8_STATUS_UNSUPPORTED_FEATURE:
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: a WebP file with features that libwebp lacks; convert it",
				   image->path);
	default:
		return smalti_fail(
		    error, SMALTI_EFORMAT, "%s: not a good WebP file: it %s, at row %" PRId64 " of %" PRId64,
		    image->path,
		    status == VP8_STATUS_SUSPENDED || status == VP8_STATUS_NOT_ENOUGH_DATA ? "ends too early"
											   : "is damaged",
		    row, image->info.height);
	}
}

static int read_file(struct smalti_image_reader *image, struct decoder *self, struct smalti_error *error)
{
	if (smalti_image_hold(image, "a WebP", image->file_bytes, error))
		return -1;
	self->file = smalti_calloc(image->file_bytes, 1, error);
	if (!self->file)
		return -1;
	self->file_bytes = (size_t)smalti_byte_source_read(&image->source, self->file, image->file_bytes);
	if (smalti_byte_source_failed(&image->source))
		return smalti_fail_errno(error, "%s: cannot be read", image->path);
	return 0;
}

static uint64_t read_length(const uint8_t *at)
{
	return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24;
}

/* Finds the container's first chunk of that name; returns what `orientation` reads in it, or 0. */
static int find_orientation(const struct decoder *self, const char *name,
			    int (*orientation)(const uint8_t *bytes, int64_t size))
{
	const uint8_t *file = self->file;
	for (uint64_t at = CONTAINER_BYTES; at + CHUNK_BYTES <= self->file_bytes;) {
		const uint64_t length = read_length(file + at + 4);
		const uint64_t left = self->file_bytes - at - CHUNK_BYTES;
		if (memcmp(file + at, name, 4) == 0)
			return orientation(file + at + CHUNK_BYTES, (int64_t)(length < left ? length : left));
		at += CHUNK_BYTES + length + length % 2;
	}
	return 0;
}

static int open_webp(struct smalti_image_reader *image, struct smalti_error *error)
{
	struct decoder *self = image->state;
	if (read_file(image, self, error))
		return -1;
	WebPBitstreamFeatures features;
	const VP8StatusCode status = WebPGetFeatures(self->file, self->file_bytes, &features);
	if (status != VP8_STATUS_OK)
		return refuse(image, status, 0, error);
	if (features.has_animation)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: a still image was expected, this WebP is animated; extract a frame",
				   image->path);
	if (smalti_image_admit(image, features.width, features.height, error))
		return -1;
	image->info.orientation = find_orientation(self, "EXIF", smalti_exif_orientation);
	if (!image->info.orientation)
		image->info.orientation = find_orientation(self, "XMP ", smalti_xmp_orientation);
	return smalti_image_hold(image, "a WebP",
				 (int64_t)features.width * features.height * PIXEL_BYTES + image->file_bytes,
				 error);
}

/* Decodes by the incremental decoder, since only that tells how far it came. */
static int decode(const struct smalti_image_reader *image, struct decoder *self, struct smalti_error *error)
{
	const int64_t stride = image->info.width * 3, bytes = stride * image->info.height;
	self->pixels = smalti_calloc(bytes, 1, error);
	if (!self->pixels)
		return -1;
	WebPIDecoder *codec = WebPINewRGB(MODE_RGB, self->pixels, (size_t)bytes, (int)stride);
	const bool complete = read_length(self->file + 4) + CHUNK_BYTES <= self->file_bytes;
	const VP8StatusCode status =
	    codec ? WebPIUpdate(codec, self->file, self->file_bytes) : VP8_STATUS_OUT_OF_MEMORY;
	int rows = 0;
	if (codec)
		WebPIDecGetRGB(codec, &rows, NULL, NULL, NULL);
	WebPIDelete(codec);
	free(self->file);
	self->file = NULL;
	if (status == VP8_STATUS_OK && complete)
		return 0;
	return refuse(image, complete ? status : VP8_STATUS_NOT_ENOUGH_DATA, rows, error);
}

static int read_rows(struct smalti_image_reader *image, int64_t count, uint8_t *rows,
		     struct smalti_error *error)
{
	struct decoder *self = image->state;
	if (!self->pixels && decode(image, self, error))
		return -1;
	const int64_t stride = image->info.width * 3;
	memcpy(rows, self->pixels + image->next * stride, (size_t)(count * stride));
	return 0;
}

static void close_webp(void *state)
{
	struct decoder *self = state;
	free(self->file);
	free(self->pixels);
}

const struct smalti_image_decoder smalti_webp_decoder = {sizeof(struct decoder), open_webp, read_rows,
							 close_webp};
