/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/utf8.h"
#include "io/png.h"

#include <inttypes.h>
#include <png.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct smalti_png {
	struct smalti_writer *writer;
	png_structp png;
	png_infop info;
	char *path;
	int64_t width, height, next; /* next row to come */
	bool finished;
	struct smalti_error cause; /* set by the callbacks before they jump */
};

static void on_error(png_structp png, png_const_charp message)
{
	struct smalti_png *self = png_get_error_ptr(png);
	smalti_fail(&self->cause, SMALTI_EINVAL, "%s: %s", self->path, message);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
	(void)png, (void)message;
}

static void on_write(png_structp png, png_bytep data, size_t length)
{
	struct smalti_png *self = png_get_io_ptr(png);
	if (fwrite(data, 1, length, smalti_writer_stream(self->writer)) != length) {
		smalti_fail_errno(&self->cause, "%s: cannot be written", self->path);
		png_error(png, "write");
	}
}

static void on_flush(png_structp png)
{
	(void)png;
}

/* After a jump: hands the callbacks' error on. */
static int jumped(struct smalti_png *self, struct smalti_error *error)
{
	return smalti_fail(error, self->cause.code, "%s", self->cause.message);
}

static bool good_key(const char *key)
{
	size_t length = strlen(key);
	if (length < 1 || length > 79 || key[0] == ' ' || key[length - 1] == ' ' || strstr(key, "  "))
		return false;
	for (; *key; key++)
		if (*key < ' ' || *key > '~')
			return false;
	return true;
}

static int check_format(const char *path, const struct smalti_png_format *format, struct smalti_error *error)
{
	if (format->width < 1 || format->width > INT32_MAX || format->height < 1 ||
	    format->height > INT32_MAX)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: a PNG has 1 to 2147483647 pixels a side, not %" PRId64 "x%" PRId64,
				   path, format->width, format->height);
	if (format->depth != 8 && format->depth != 16)
		return smalti_fail(error, SMALTI_EINVAL, "%s: a sample has 8 or 16 bits, not %d", path,
				   format->depth);
	for (int i = 0; i < format->text_count; i++) {
		const struct smalti_png_text *text = &format->texts[i];
		if (!good_key(text->key))
			return smalti_fail(error, SMALTI_EINVAL, "%s: '%.99s' cannot be a metadata key", path,
					   text->key);
		if (!smalti_utf8_valid(text->value, strlen(text->value)))
			return smalti_fail(error, SMALTI_EINVAL, "%s: the metadata '%s' is not UTF-8", path,
					   text->key);
	}
	return 0;
}

/* tEXt is for Latin-1 and better known to other programs, iTXt for the rest. */
static png_text convert_text(const struct smalti_png_text *text)
{
	bool plain = true;
	for (const char *c = text->value; *c && plain; c++)
		plain = (*c >= ' ' && *c <= '~') || *c == '\n';
	size_t length = strlen(text->value);
	return (png_text){
	    .compression = plain ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE,
	    .key = (char *)text->key,
	    .text = (char *)text->value,
	    .text_length = plain ? length : 0,
	    .itxt_length = plain ? 0 : length,
	};
}

/* On generated pictures all filters with Z_RLE give the size of zlib's level 6 at five times its
 * speed. */
static int write_header(struct smalti_png *self, const struct smalti_png_format *format,
			struct smalti_error *error)
{
	if (setjmp(png_jmpbuf(self->png)))
		return jumped(self, error);
	png_set_user_limits(self->png, INT32_MAX, INT32_MAX);
	png_set_write_fn(self->png, self, on_write, on_flush);
	png_set_IHDR(self->png, self->info, (png_uint_32)format->width, (png_uint_32)format->height,
		     format->depth, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
		     PNG_FILTER_TYPE_DEFAULT);
	png_set_filter(self->png, PNG_FILTER_TYPE_BASE, PNG_ALL_FILTERS);
	png_set_compression_level(self->png, 1);
	png_set_compression_strategy(self->png, Z_RLE);
	png_set_compression_buffer_size(self->png, 1 << 16);
	for (int i = 0; i < format->text_count; i++) {
		png_text text = convert_text(&format->texts[i]);
		png_set_text(self->png, self->info, &text, 1);
	}
	png_write_info(self->png, self->info);
	if (format->depth == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		png_set_swap(self->png);
	return 0;
}

static int start(struct smalti_png *self, const char *path, const struct smalti_png_format *format,
		 struct smalti_error *error)
{
	self->path = smalti_format(error, "%s", path);
	self->writer = self->path ? smalti_writer_open(path, error) : NULL;
	if (!self->writer)
		return -1;
	self->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, self, on_error, on_warning);
	self->info = self->png ? png_create_info_struct(self->png) : NULL;
	if (!self->info)
		return smalti_fail(error, SMALTI_ENOMEM, "%s: no memory for the PNG encoder", path);
	return write_header(self, format, error);
}

struct smalti_png *smalti_png_create(const char *path, const struct smalti_png_format *format,
				     struct smalti_error *error)
{
	if (check_format(path, format, error))
		return NULL;
	struct smalti_png *self = smalti_calloc(1, sizeof(*self), error);
	if (!self)
		return NULL;
	self->width = format->width;
	self->height = format->height;
	if (start(self, path, format, error) == 0)
		return self;
	smalti_png_abort(self);
	return NULL;
}

int smalti_png_write_rows(struct smalti_png *self, int64_t first, int64_t count, const void *rows,
			  struct smalti_error *error)
{
	if (first != self->next || count < 0 || count > self->height - first)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: rows %" PRId64 " to %" PRId64 " of %" PRId64
				   " came where row %" PRId64 " was expected",
				   self->path, first, first + count - 1, self->height, self->next);
	if (setjmp(png_jmpbuf(self->png)))
		return jumped(self, error);
	const unsigned char *row = rows;
	size_t bytes = png_get_rowbytes(self->png, self->info);
	while (self->next < first + count) {
		png_write_row(self->png, row + (size_t)(self->next - first) * bytes);
		self->next++;
	}
	return 0;
}

int smalti_png_finish(struct smalti_png *self, struct smalti_error *error)
{
	if (self->next != self->height)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: only %" PRId64 " of %" PRId64 " rows were written", self->path,
				   self->next, self->height);
	if (setjmp(png_jmpbuf(self->png)))
		return jumped(self, error);
	png_write_end(self->png, NULL);
	self->finished = true;
	return 0;
}

/* All but the writer. */
static void release(struct smalti_png *self)
{
	png_destroy_write_struct(&self->png, &self->info);
	free(self->path);
	free(self);
}

int smalti_png_commit(struct smalti_png *self, struct smalti_error *error)
{
	int status;
	if (self->finished) {
		status = smalti_writer_commit(self->writer, error);
	} else {
		status = smalti_fail(error, SMALTI_EINVAL, "%s: the picture is not finished", self->path);
		smalti_writer_abort(self->writer);
	}
	release(self);
	return status;
}

void smalti_png_abort(struct smalti_png *self)
{
	if (!self)
		return;
	smalti_writer_abort(self->writer);
	release(self);
}
