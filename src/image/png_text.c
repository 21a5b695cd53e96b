/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png_text.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/utf8.h"
#include "image/png_reader.h"

#include <string.h>

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
	FILE *file = smalti_open_stream(path, &size, error);
	if (!file)
		return -1;
	struct smalti_png_reader reader;
	int status = smalti_png_reader_open(&reader, (struct smalti_source){.file = file}, path, error);
	if (status == 0)
		status = smalti_png_reader_header(&reader, error);
	if (status == 0)
		status = find_text(&reader, key, value, error);
	smalti_png_reader_close(&reader);
	fclose(file);
	return status;
}
