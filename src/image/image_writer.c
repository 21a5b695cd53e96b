/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "image/image_decoder.h"

static const struct smalti_image_encoder *const encoders[] = {
    [SMALTI_IMAGE_PNG] = &smalti_png_encoder,
    [SMALTI_IMAGE_PPM] = &smalti_ppm_encoder,
};

static int check_format(const char *path, const struct smalti_image_format *format,
			struct smalti_error *error)
{
	if (format->width < 1 || format->width > INT32_MAX || format->height < 1 ||
	    format->height > INT32_MAX)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: an image has 1 to 2147483647 pixels a side, not %" PRId64 "x%" PRId64,
				   path, format->width, format->height);
	if (format->depth != 8 && format->depth != 16)
		return smalti_fail(error, SMALTI_EINVAL, "%s: a sample has 8 or 16 bits, not %d", path,
				   format->depth);
	return 0;
}

static int start(struct smalti_image_writer *self, FILE *stream, const char *path,
		 const struct smalti_image_format *format, struct smalti_error *error)
{
	self->path = smalti_format(error, "%s", strcmp(path, "-") ? path : "standard output");
	if (!self->path)
		return -1;
	self->stream = stream;
	if (!stream) {
		self->file = smalti_writer_open(path, error);
		if (!self->file)
			return -1;
		self->stream = smalti_writer_stream(self->file);
	}
	return self->encoder->open(self, format, error);
}

struct smalti_image_writer *smalti_image_create(const char *path, const struct smalti_image_format *format,
						struct smalti_error *error)
{
	return smalti_image_begin(NULL, path, format, error);
}

struct smalti_image_writer *smalti_image_begin(FILE *stream, const char *path,
					       const struct smalti_image_format *format,
					       struct smalti_error *error)
{
	if (check_format(path, format, error))
		return NULL;
	struct smalti_image_writer *self = smalti_calloc(1, sizeof(*self), error);
	if (!self)
		return NULL;
	self->width = format->width;
	self->height = format->height;
	self->depth = format->depth;
	self->encoder = encoders[format->encoding];
	if (start(self, stream, path, format, error) == 0)
		return self;
	smalti_image_abort(self);
	return NULL;
}

int smalti_image_write_rows(struct smalti_image_writer *self, int64_t first, int64_t count, const void *rows,
			    struct smalti_error *error)
{
	if (first != self->next || count < 0 || count > self->height - first)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: rows %" PRId64 " to %" PRId64 " of %" PRId64
				   " came where row %" PRId64 " was expected",
				   self->path, first, first + count - 1, self->height, self->next);
	const char *row = rows;
	for (; self->next < first + count; self->next++, row += self->width * 3 * (self->depth / 8))
		if (self->encoder->write_row(self, row, error))
			return -1;
	return 0;
}

int smalti_image_finish(struct smalti_image_writer *self, struct smalti_error *error)
{
	if (self->next != self->height)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: only %" PRId64 " of %" PRId64 " rows were written", self->path,
				   self->next, self->height);
	if (self->encoder->finish(self, error))
		return -1;
	self->finished = true;
	return 0;
}

/* Frees all but the file. */
static void release(struct smalti_image_writer *self)
{
	if (self->state)
		self->encoder->close(self->state);
	free(self->path);
	free(self);
}

int smalti_image_sync(struct smalti_image_writer *self, struct smalti_error *error)
{
	return smalti_writer_sync(self->file, error);
}

static int give_name(struct smalti_image_writer *self,
		     int (*end)(struct smalti_writer *writer, struct smalti_error *error),
		     struct smalti_error *error)
{
	int status;
	if (self->finished) {
		status = end(self->file, error);
	} else {
		status = smalti_fail(error, SMALTI_EINVAL, "%s: the image is not finished", self->path);
		smalti_writer_abort(self->file);
	}
	release(self);
	return status;
}

int smalti_image_commit(struct smalti_image_writer *self, struct smalti_error *error)
{
	return give_name(self, smalti_writer_commit, error);
}

int smalti_image_place(struct smalti_image_writer *self, struct smalti_error *error)
{
	return give_name(self, smalti_writer_place, error);
}

void smalti_image_abort(struct smalti_image_writer *self)
{
	if (!self)
		return;
	smalti_writer_abort(self->file);
	release(self);
}
