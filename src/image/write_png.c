/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "image/image_decoder.h"

#include <png.h>
#include <zlib.h>

struct encoder {
	png_structp png;
	png_infop info;
	const struct smalti_image_writer *writer;
	struct smalti_error cause; /* set by the callbacks before they jump */
};

static void on_error(png_structp png, png_const_charp message)
{
	struct encoder *self = png_get_error_ptr(png);
	smalti_fail(&self->cause, SMALTI_EINVAL, "%s: %s", self->writer->path, message);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
	(void)png, (void)message;
}

static void on_write(png_structp png, png_bytep data, size_t length)
{
	struct encoder *self = png_get_io_ptr(png);
	if (fwrite(data, 1, length, self->writer->stream) != length) {
		smalti_fail_errno(&self->cause, "%s: cannot be written", self->writer->path);
		png_error(png, "write");
	}
}

static void on_flush(png_structp png)
{
	(void)png;
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

static int check_texts(const char *path, const struct smalti_image_format *format, struct smalti_error *error)
{
	for (int i = 0; i < format->text_count; i++) {
		const struct smalti_image_text *text = &format->texts[i];
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
static png_text convert_text(const struct smalti_image_text *text)
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

/* On generated images all filters with Z_RLE give the size of zlib's level 6 at five times its
 * speed. */
static int write_header(struct encoder *self, const struct smalti_image_format *format,
			struct smalti_error *error)
{
	if (setjmp(png_jmpbuf(self->png)))
		return smalti_pass(error, &self->cause);
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

static int open_png(struct smalti_image_writer *writer, const struct smalti_image_format *format,
		    struct smalti_error *error)
{
	if (check_texts(writer->path, format, error))
		return -1;
	struct encoder *self = smalti_calloc(1, sizeof(*self), error);
	if (!self)
		return -1;
	writer->state = self;
	self->writer = writer;
	self->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, self, on_error, on_warning);
	self->info = self->png ? png_create_info_struct(self->png) : NULL;
	if (!self->info)
		return smalti_fail(error, SMALTI_ENOMEM, "%s: no memory for the PNG encoder", writer->path);
	return write_header(self, format, error);
}

static int write_row(struct smalti_image_writer *writer, const void *row, struct smalti_error *error)
{
	struct encoder *self = writer->state;
	if (setjmp(png_jmpbuf(self->png)))
		return smalti_pass(error, &self->cause);
	png_write_row(self->png, row);
	return 0;
}

static int finish(struct smalti_image_writer *writer, struct smalti_error *error)
{
	struct encoder *self = writer->state;
	if (setjmp(png_jmpbuf(self->png)))
		return smalti_pass(error, &self->cause);
	png_write_end(self->png, NULL);
	return 0;
}

static void close_png(void *state)
{
	struct encoder *self = state;
	png_destroy_write_struct(&self->png, &self->info);
	free(self);
}

const struct smalti_image_encoder smalti_png_encoder = {open_png, write_row, finish, close_png};
