/* SPDX-License-Identifier: Apache-2.0 */
#include "bad_dataset.h"

#include "base/file.h"
#include "datasets.h"
#include "harness.h"
#include "image/image_writer.h"
#include "png_chunk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct bad_item bad_items[BAD_ITEMS] = {
    {"good.png", NULL, NULL, "pictures/plain.png", 0, NULL},
    {"missing.png", "picture", "cannot be opened", NULL, 0, NULL},
    {"truncated.jpg", "picture", "not a good JPEG", "image/rgb-444.jpg", 800, NULL},
    {"truncated.png", "picture", "not a good PNG", "image/rgb8.png", 700, NULL},
    {"truncated.webp", "picture", "not a good WebP", "image/lossless.webp", 500, NULL},
    {"zero.png", "picture", "file is empty", "(empty)", 0, NULL},
    {"text.jpg", "picture", "is none of them", "captions.json", 0, NULL},
    {"folder.png", "picture", "this is a directory", "(folder)", 0, NULL},
    {"sub/wide.png", NULL, NULL, "(wide)", 0, NULL},
    {"huge.png", "picture", "50000x50000", "(huge)", 0, NULL},
    {"cmyk.jpg", NULL, NULL, "image/cmyk.jpg", 0, NULL},
    {"animated.webp", "picture", "animated", "image/animated.webp", 0, NULL},
    {"animated.png", NULL, NULL, "(animated)", 0, NULL}, /* its first image, as viewers without APNG see it */
    {"jpeg.png", NULL, NULL, "image/rgb-444.jpg", 0, NULL},
    {"empty-caption.png", NULL, NULL, "image/rgb8.png", 0,
     "{\"path\": \"empty-caption.png\", \"prompt\": \"\"}"},
    {"no-caption.png", "caption", "prompt", "image/rgb8.png", 0, "{\"path\": \"no-caption.png\"}"},
    {"null-caption.png", "caption", "prompt", "image/rgb8.png", 0,
     "{\"path\": \"null-caption.png\", \"prompt\": null}"},
    {"number.png", "caption", "expected a string, found 3", "image/rgb8.png", 0,
     "{\"path\": \"number.png\", \"prompt\": 3}"},
    {"long-caption.png", NULL, NULL, "image/rgb8.png", 0,
     "{\"path\": \"long-caption.png\", \"prompt\": \"LONG\"}"},
    {"utf8.png", "caption", "UTF-8", "image/rgb8.png", 0,
     "{\"path\": \"utf8.png\", \"prompt\": \"a st\xc3r\"}"},
    {"good.png", "list", "same key", "pictures/plain.png", 0, NULL},
    {"000000021", "list", "not valid JSON", NULL, 0, "{\"path\": \"broken.png\", \"prompt\": \"a star\"]"},
    {"000000022", "list", "path: expected a string", NULL, 0, "{\"path\": [], \"prompt\": \"a star\"}"},
    {"a/same.png", NULL, NULL, "image/rgb8.png", 0, NULL},
    {"b/same.png", NULL, NULL, "image/palette8.png", 0, NULL},
};

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void write_wide(const char *path)
{
	static uint8_t row[50000 * 3];
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_image_format format = {.width = 50000, .height = 3, .depth = 8};
	struct smalti_image_writer *writer = smalti_image_create(path, &format, &error);
	for (size_t i = 0; i < sizeof(row); i++)
		row[i] = (uint8_t)(i / 600);
	for (int y = 0; y < 3; y++)
		check(writer && smalti_image_write_rows(writer, y, 1, row, &error) == 0, error.message);
	check(smalti_image_finish(writer, &error) == 0 && smalti_image_commit(writer, &error) == 0,
	      error.message);
}

static char *read_data(const char *name, size_t *length)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char *bytes = smalti_file_read(test_data(name), 1 << 20, length, &error);
	check(bytes, error.message);
	return bytes;
}

/* A good PNG with the chunk behind its header that says that two frames follow. */
static void write_animated(const char *directory, const char *path)
{
	size_t length;
	char *still = read_data("image/rgb8.png", &length);
	uint8_t file[2048];
	memcpy(file, still, PNG_HEADER_BYTES);
	const size_t chunk = png_put_chunk(file + PNG_HEADER_BYTES, "acTL", "\0\0\0\2\0\0\0\0", 8);
	memcpy(file + PNG_HEADER_BYTES + chunk, still + PNG_HEADER_BYTES, length - PNG_HEADER_BYTES);
	dataset_write_file(directory, path, file, length + chunk);
	free(still);
}

static void write_image(const char *image_root, const struct bad_item *item)
{
	char path[1024];
	uint8_t claim[PNG_CLAIM_BYTES];
	snprintf(path, sizeof(path), "%s/%s", image_root, item->key);
	if (strcmp(item->image, "(folder)") == 0) {
		check(mkdir(path, 0777) == 0, path);
	} else if (strcmp(item->image, "(empty)") == 0) {
		dataset_write_file(image_root, item->key, "", 0);
	} else if (strcmp(item->image, "(wide)") == 0) {
		dataset_write_file(image_root, item->key, "", 0);
		write_wide(path);
	} else if (strcmp(item->image, "(huge)") == 0) {
		png_put_claim(claim, 50000, 50000, 0);
		dataset_write_file(image_root, item->key, claim, sizeof(claim));
	} else if (strcmp(item->image, "(animated)") == 0) {
		write_animated(image_root, item->key);
	} else {
		size_t length;
		char *bytes = read_data(item->image, &length);
		dataset_write_file(image_root, item->key, bytes, item->bytes ? (size_t)item->bytes : length);
		free(bytes);
	}
}

static void write_entry(FILE *list, const struct bad_item *item)
{
	const char *words = item->entry ? strstr(item->entry, "LONG") : NULL;
	if (!item->entry) {
		fprintf(list, "{\"path\": \"%s\", \"prompt\": \"a red star\"}", item->key);
	} else if (words) {
		fwrite(item->entry, 1, (size_t)(words - item->entry), list);
		for (int i = 0; i < BAD_LONG; i++)
			fputc("a star, "[i % 8], list);
		fputs(words + 4, list);
	} else {
		fputs(item->entry, list);
	}
}

static FILE *create(const char *directory, const char *name)
{
	char path[1024];
	dataset_write_file(directory, name, "", 0);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *file = fopen(path, "wb");
	check(file, path);
	return file;
}

void bad_dataset_write(const char *directory)
{
	char image_root[512];
	snprintf(image_root, sizeof(image_root), "%s/InternImgs", directory);
	FILE *list = create(directory, "InternData/data_info.json"), *failed = create(directory, "failed");
	dataset_write_file(image_root, "unlisted", "", 0);
	for (int i = 0; i < BAD_ITEMS; i++) {
		const struct bad_item *item = &bad_items[i];
		fputs(i ? ",\n " : "[", list);
		write_entry(list, item);
		if (item->image)
			write_image(image_root, item);
		if (item->stage)
			fprintf(failed, "%d\t%s\t%s\n", i, item->stage, item->key);
	}
	fputs("]\n", list);
	fclose(list);
	fclose(failed);
}
