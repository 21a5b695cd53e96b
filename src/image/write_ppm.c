/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_decoder.h"

static int failed(const struct smalti_image_writer *writer, struct smalti_error *error)
{
	return smalti_fail_errno(error, "%s: cannot be written", writer->path);
}

static int open_ppm(struct smalti_image_writer *writer, const struct smalti_image_format *format,
		    struct smalti_error *error)
{
	const int length = fprintf(writer->stream, "P6\n%" PRId64 " %" PRId64 "\n%d\n", format->width,
				   format->height, (1 << format->depth) - 1);
	return length < 0 ? failed(writer, error) : 0;
}

/* Writes a row of 16 bits in pieces, high bytes first. */
static int write_deep_row(struct smalti_image_writer *writer, const uint16_t *row, struct smalti_error *error)
{
	enum { PIECE = 1024 };
	uint8_t bytes[PIECE * 2];
	for (int64_t first = 0, samples = writer->width * 3; first < samples; first += PIECE) {
		const int64_t count = samples - first < PIECE ? samples - first : PIECE;
		for (int64_t i = 0; i < count; i++) {
			bytes[2 * i] = (uint8_t)(row[first + i] >> 8);
			bytes[2 * i + 1] = (uint8_t)row[first + i];
		}
		if (fwrite(bytes, 2, (size_t)count, writer->stream) != (size_t)count)
			return failed(writer, error);
	}
	return 0;
}

static int write_row(struct smalti_image_writer *writer, const void *row, struct smalti_error *error)
{
	if (writer->depth == 16)
		return write_deep_row(writer, row, error);
	const size_t bytes = (size_t)writer->width * 3;
	return fwrite(row, 1, bytes, writer->stream) == bytes ? 0 : failed(writer, error);
}

static int finish(struct smalti_image_writer *writer, struct smalti_error *error)
{
	(void)writer, (void)error;
	return 0;
}

const struct smalti_image_encoder smalti_ppm_encoder = {open_ppm, write_row, finish, NULL};
