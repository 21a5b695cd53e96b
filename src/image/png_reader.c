/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png_reader.h"
#include "base/file.h"
#include "base/utf8.h"

/* No chunk before the pixels needs more memory than this, and no file needs more of them: a small file of
 * texts that inflate to zeros takes no more than both allow. */
enum { CHUNK_BYTES = 4 << 20, CHUNKS = 100 };

static void on_error(png_structp png, png_const_charp message)
{
	struct smalti_png_reader *reader = png_get_error_ptr(png);
	if (reader->height)
		smalti_fail(&reader->cause, SMALTI_EFORMAT,
			    "%s: not a good PNG file: %s, at row %" PRId64 " of %" PRId64, reader->path,
			    message, reader->row, reader->height);
	else
		smalti_fail(&reader->cause, SMALTI_EFORMAT, "%s: not a good PNG file: %s, in its header",
			    reader->path, message);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
	(void)png, (void)message;
}

static void on_read(png_structp png, png_bytep data, size_t length)
{
	struct smalti_png_reader *reader = png_get_io_ptr(png);
	errno = 0;
	if (smalti_byte_source_read(&reader->source, data, (int64_t)length) == (int64_t)length)
		return;
	if (smalti_byte_source_failed(&reader->source))
		smalti_fail_errno(&reader->cause, "%s: cannot be read", reader->path);
	png_error(png, "it ends too early");
}

/* libpng's own limit only warns, and then it allocates what a damaged length says. */
static png_voidp on_malloc(png_structp png, png_alloc_size_t size)
{
	const struct smalti_png_reader *reader = png_get_mem_ptr(png);
	return size <= (uint64_t)reader->largest ? malloc(size) : NULL;
}

static void on_free(png_structp png, png_voidp memory)
{
	(void)png;
	free(memory);
}

int smalti_png_reader_open(struct smalti_png_reader *reader, struct smalti_byte_source source,
			   const char *path, struct smalti_error *error)
{
	*reader = (struct smalti_png_reader){.path = path, .largest = CHUNK_BYTES, .source = source};
	reader->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning, reader,
					       on_malloc, on_free);
	reader->info = reader->png ? png_create_info_struct(reader->png) : NULL;
	if (!reader->info)
		return smalti_fail(error, SMALTI_ENOMEM, "%s: no memory for the PNG decoder", path);
	png_set_user_limits(reader->png, INT32_MAX, INT32_MAX);
	png_set_chunk_malloc_max(reader->png, CHUNK_BYTES);
	png_set_chunk_cache_max(reader->png, CHUNKS);
	png_set_read_fn(reader->png, reader, on_read);
	return 0;
}

void smalti_png_reader_close(struct smalti_png_reader *reader)
{
	if (reader->png)
		png_destroy_read_struct(&reader->png, &reader->info, NULL);
}

int smalti_png_reader_header(struct smalti_png_reader *reader, struct smalti_error *error)
{
	if (setjmp(png_jmpbuf(reader->png)))
		return smalti_pass(error, &reader->cause);
	png_read_info(reader->png, reader->info);
	reader->height = png_get_image_height(reader->png, reader->info);
	return 0;
}

static int find_text(const struct smalti_png_reader *reader, const char *key, char **value,
		     struct smalti_error *error)
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
	int64_t size;
	SCOPED(fclose) FILE *file = smalti_open_stream(path, &size, error);
	if (!file)
		return -1;
	struct smalti_png_reader reader;
	const struct smalti_byte_source source = {.file = file};
	const int status = smalti_png_reader_open(&reader, source, path, error) ||
				   smalti_png_reader_header(&reader, error) ||
				   find_text(&reader, key, value, error)
			       ? -1
			       : 0;
	smalti_png_reader_close(&reader);
	return status;
}
