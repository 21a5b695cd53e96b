/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/utf8.h"
#include "io/png.h"

#include <errno.h>
#include <inttypes.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No chunk before the pixels needs more memory than this, and no file needs more of them. */
enum { CHUNK_BYTES = 64 << 20, CHUNKS = 1000 };

struct reader {
	FILE *file;
	const char *path;
	png_structp png;
	png_infop info;
	uint8_t *pixels;
	png_bytep *rows;
	int64_t largest; /* what libpng may allocate in one piece */
	struct smalti_error cause;
};

static void on_error(png_structp png, png_const_charp message)
{
	struct reader *reader = png_get_error_ptr(png);
	smalti_fail(&reader->cause, SMALTI_EFORMAT, "%s: not a good PNG file: %s", reader->path, message);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
	(void)png, (void)message;
}

static void on_read(png_structp png, png_bytep data, size_t length)
{
	struct reader *reader = png_get_io_ptr(png);
	errno = 0;
	if (fread(data, 1, length, reader->file) == length)
		return;
	if (ferror(reader->file))
		smalti_fail_errno(&reader->cause, "%s: cannot be read", reader->path);
	png_error(png, "it ends too early");
}

/* libpng's own limit only warns, and then it allocates what a damaged length says. */
static png_voidp on_malloc(png_structp png, png_alloc_size_t size)
{
	const struct reader *reader = png_get_mem_ptr(png);
	return size <= (uint64_t)reader->largest ? malloc(size) : NULL;
}

static void on_free(png_structp png, png_voidp memory)
{
	(void)png;
	free(memory);
}

static int jumped(const struct reader *reader, struct smalti_error *error)
{
	return smalti_fail(error, reader->cause.code, "%s", reader->cause.message);
}

static int open_reader(struct reader *reader, const char *path, struct smalti_error *error)
{
	*reader = (struct reader){.path = path, .largest = CHUNK_BYTES, .file = fopen(path, "re")};
	if (!reader->file)
		return smalti_fail_errno(error, "%s: cannot be opened", path);
	reader->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning, reader,
					       on_malloc, on_free);
	reader->info = reader->png ? png_create_info_struct(reader->png) : NULL;
	if (!reader->info)
		return smalti_fail(error, SMALTI_ENOMEM, "%s: no memory for the PNG decoder", path);
	return 0;
}

static void close_reader(struct reader *reader)
{
	if (reader->png)
		png_destroy_read_struct(&reader->png, &reader->info, NULL);
	if (reader->file)
		fclose(reader->file);
	free(reader->rows);
	free(reader->pixels);
}

/* All that comes before the pixels. */
static int read_header(struct reader *reader, struct smalti_error *error)
{
	if (setjmp(png_jmpbuf(reader->png)))
		return jumped(reader, error);
	png_set_user_limits(reader->png, INT32_MAX, INT32_MAX);
	png_set_chunk_malloc_max(reader->png, CHUNK_BYTES);
	png_set_chunk_cache_max(reader->png, CHUNKS);
	png_set_read_fn(reader->png, reader, on_read);
	png_read_info(reader->png, reader->info);
	return 0;
}

static int find_text(const struct reader *reader, const char *key, char **value, struct smalti_error *error)
{
	png_textp texts = NULL;
	int count = 0;
	png_get_text(reader->png, reader->info, &texts, &count);
	for (int i = 0; i < count; i++) {
		if (strcmp(texts[i].key, key) != 0)
			continue;
		const char *text = texts[i].text ? texts[i].text : "";
		if (!smalti_utf8_valid(text, strlen(text)))
			return smalti_fail(error, SMALTI_EFORMAT, "%s: the metadata '%s' is not UTF-8",
					   reader->path, key);
		*value = smalti_format(error, "%s", text);
		return *value ? 0 : -1;
	}
	return 0;
}

int smalti_png_read_text(const char *path, const char *key, char **value, struct smalti_error *error)
{
	*value = NULL;
	struct reader reader;
	int status = open_reader(&reader, path, error);
	if (status == 0)
		status = read_header(&reader, error);
	if (status == 0)
		status = find_text(&reader, key, value, error);
	close_reader(&reader);
	return status;
}

static int allocate(struct reader *reader, int64_t width, int64_t height, int64_t limit,
		    struct smalti_error *error)
{
	int64_t pixels = width;
	if (!smalti_multiply(&pixels, height) || pixels > limit)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: a picture of at most %" PRId64 " pixels was expected, found %" PRId64
				   "x%" PRId64,
				   reader->path, limit, width, height);
	reader->largest += width * 16; /* a row of 16-bit RGBA twice over */
	reader->pixels = smalti_calloc(pixels, 3, error);
	reader->rows = smalti_calloc(height, sizeof(png_bytep), error);
	if (!reader->pixels || !reader->rows)
		return -1;
	for (int64_t y = 0; y < height; y++)
		reader->rows[y] = reader->pixels + y * width * 3;
	return 0;
}

static int read_pixels(struct reader *reader, int64_t width, struct smalti_error *error)
{
	if (setjmp(png_jmpbuf(reader->png)))
		return jumped(reader, error);
	png_set_expand(reader->png);
	png_set_scale_16(reader->png);
	png_set_gray_to_rgb(reader->png);
	png_set_strip_alpha(reader->png);
	png_set_interlace_handling(reader->png);
	png_read_update_info(reader->png, reader->info);
	if (png_get_rowbytes(reader->png, reader->info) != (size_t)width * 3)
		png_error(reader->png, "its rows do not become RGB");
	png_read_image(reader->png, reader->rows);
	png_read_end(reader->png, NULL);
	return 0;
}

uint8_t *smalti_png_read_rgb8(const char *path, int64_t limit, int64_t *width, int64_t *height,
			      struct smalti_error *error)
{
	struct reader reader;
	uint8_t *pixels = NULL;
	if (open_reader(&reader, path, error) == 0 && read_header(&reader, error) == 0) {
		*width = png_get_image_width(reader.png, reader.info);
		*height = png_get_image_height(reader.png, reader.info);
		if (allocate(&reader, *width, *height, limit, error) == 0 &&
		    read_pixels(&reader, *width, error) == 0) {
			pixels = reader.pixels;
			reader.pixels = NULL;
		}
	}
	close_reader(&reader);
	return pixels;
}
