/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_decoder.h"
#include "image/png_reader.h"

struct decoder {
	struct smalti_png_reader reader;
	int64_t row_bytes;   /* of a row as libpng gives it */
	bool grey16;         /* two bytes a pixel, to be made RGB here */
	uint8_t *row;        /* of 16-bit grey */
	uint8_t *whole;      /* all rows of an interlaced image */
	png_bytep *pointers; /* to its rows */
};

/* Chunks that are not used are neither inflated nor kept: only eXIf is, and iTXt, as it is. Without tRNS
 * there is no transparency but that of alpha channels. */
static void ignore_chunks(png_structp png)
{
	png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
	png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep) "tRNS", 1);
	png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_AS_DEFAULT, (png_const_bytep) "eXIf", 1);
	png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_ALWAYS, (png_const_bytep) "iTXt", 1);
	png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
}

/* Reads a text that is not compressed, as XMP's specification has it. */
static int find_xmp_orientation(const struct smalti_png_reader *reader)
{
	static const char key[] = "XML:com.adobe.xmp\0"; /* the second NUL: not compressed */
	png_unknown_chunkp chunks = NULL;
	const int count = png_get_unknown_chunks(reader->png, reader->info, &chunks);
	for (int i = 0; i < count; i++)
		if (chunks[i].size > sizeof(key) && memcmp(chunks[i].data, key, sizeof(key)) == 0)
			return smalti_xmp_orientation(chunks[i].data, (int64_t)chunks[i].size);
	return 0;
}

static int find_orientation(const struct smalti_png_reader *reader)
{
	png_uint_32 length = 0;
	png_bytep exif = NULL;
	int orientation = 0;
	if (png_get_eXIf_1(reader->png, reader->info, &length, &exif))
		orientation = smalti_exif_orientation(exif, length);
	return orientation ? orientation : find_xmp_orientation(reader);
}

/* Makes RGB as Pillow does: see image.h. */
static int choose_colours(struct decoder *self, int64_t width, struct smalti_error *error)
{
	struct smalti_png_reader *reader = &self->reader;
	if (setjmp(png_jmpbuf(reader->png)))
		return smalti_pass(error, &reader->cause);
	self->grey16 = png_get_color_type(reader->png, reader->info) == PNG_COLOR_TYPE_GRAY &&
		       png_get_bit_depth(reader->png, reader->info) == 16;
	if (!self->grey16) {
		png_set_expand(reader->png);
		png_set_strip_16(reader->png);
		png_set_gray_to_rgb(reader->png);
		png_set_strip_alpha(reader->png);
	}
	png_set_interlace_handling(reader->png);
	png_read_update_info(reader->png, reader->info);
	self->row_bytes = (int64_t)png_get_rowbytes(reader->png, reader->info);
	if (self->row_bytes != width * (self->grey16 ? 2 : 3))
		png_error(reader->png, "its rows do not become RGB");
	return 0;
}

static int open_png(struct smalti_image_reader *image, struct smalti_error *error)
{
	struct smalti_png_reader *reader = &((struct decoder *)image->state)->reader;
	if (smalti_png_reader_open(reader, image->source, image->path, error))
		return -1;
	ignore_chunks(reader->png);
	if (smalti_png_reader_header(reader, error) ||
	    smalti_image_admit(image, png_get_image_width(reader->png, reader->info), reader->height, error))
		return -1;
	image->info.orientation = find_orientation(reader);
	if (png_get_interlace_type(reader->png, reader->info) == PNG_INTERLACE_NONE)
		return 0;
	return smalti_image_hold(image, "an interlaced PNG",
				 reader->height * (image->info.width * 3 + (int64_t)sizeof(png_bytep)),
				 error);
}

static int read_interlaced(struct decoder *self, struct smalti_error *error)
{
	struct smalti_png_reader *reader = &self->reader;
	if (setjmp(png_jmpbuf(reader->png)))
		return smalti_pass(error, &reader->cause);
	png_read_image(reader->png, self->pointers);
	png_read_end(reader->png, NULL);
	return 0;
}

/* Prepares the first row; an interlaced image is read whole. */
static int start(const struct smalti_image_reader *image, struct decoder *self, struct smalti_error *error)
{
	const int64_t width = image->info.width, height = image->info.height;
	self->reader.largest += width * 16; /* a row of 16-bit RGBA twice over */
	if (choose_colours(self, width, error))
		return -1;
	if (self->grey16 && !(self->row = smalti_calloc(self->row_bytes, 1, error)))
		return -1;
	if (png_get_interlace_type(self->reader.png, self->reader.info) == PNG_INTERLACE_NONE)
		return 0;
	self->whole = smalti_calloc(height, self->row_bytes, error);
	self->pointers = smalti_calloc(height, sizeof(png_bytep), error);
	if (!self->whole || !self->pointers)
		return -1;
	for (int64_t y = 0; y < height; y++)
		self->pointers[y] = self->whole + y * self->row_bytes;
	return read_interlaced(self, error);
}

/* Clips big-endian grey at 255. */
static void clip_grey16(const uint8_t *grey, int64_t count, uint8_t *rgb)
{
	for (int64_t i = 0; i < count; i++)
		memset(rgb + 3 * i, grey[2 * i] ? 255 : grey[2 * i + 1], 3);
}

static int read_row(struct decoder *self, uint8_t *to, struct smalti_error *error)
{
	struct smalti_png_reader *reader = &self->reader;
	if (setjmp(png_jmpbuf(reader->png)))
		return smalti_pass(error, &reader->cause);
	png_read_row(reader->png, to, NULL);
	if (reader->row + 1 == reader->height)
		png_read_end(reader->png, NULL);
	return 0;
}

static int read_rows(struct smalti_image_reader *image, int64_t count, uint8_t *rows,
		     struct smalti_error *error)
{
	struct decoder *self = image->state;
	struct smalti_png_reader *reader = &self->reader;
	const int64_t width = image->info.width;
	if (!self->row_bytes && start(image, self, error))
		return -1;
	for (int64_t y = 0; y < count; y++, reader->row++) {
		uint8_t *to = rows + y * width * 3;
		uint8_t *row = self->whole ? self->pointers[reader->row] : self->grey16 ? self->row : to;
		if (!self->whole && read_row(self, row, error))
			return -1;
		if (self->grey16)
			clip_grey16(row, width, to);
		else if (row != to)
			memcpy(to, row, (size_t)self->row_bytes);
	}
	return 0;
}

static void close_png(void *state)
{
	struct decoder *self = state;
	smalti_png_reader_close(&self->reader);
	free(self->row);
	free(self->whole);
	free(self->pointers);
}

const struct smalti_image_decoder smalti_png_decoder = {sizeof(struct decoder), open_png, read_rows,
							close_png};
