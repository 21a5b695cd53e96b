/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "base/utf8.h"
#include "dataset/dataset.h"
#include "dataset/dataset_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The first byte is the format, by the name of a link to the file; else what it holds decides. */
static const char *const names[] = {"csv", "tsv", "tar", "jsonl", "json"};
enum { NAMES = sizeof(names) / sizeof(*names), KEYS = 2 };

static char directory[] = "/tmp/smalti-fuzz-XXXXXX";

static void remove_directory(void)
{
	char path[64];
	for (int i = 0; i < NAMES; i++) {
		snprintf(path, sizeof(path), "%s/x.%s", directory, names[i]);
		unlink(path);
	}
	rmdir(directory);
}

static int make_file(void)
{
	const int file = memfd_create("dataset", 0);
	char target[64], path[64];
	snprintf(target, sizeof(target), "/proc/self/fd/%d", file);
	if (!mkdtemp(directory) || atexit(remove_directory))
		abort();
	for (int i = 0; i < NAMES; i++) {
		snprintf(path, sizeof(path), "%s/x.%s", directory, names[i]);
		if (symlink(target, path))
			abort();
	}
	return file;
}

static uint64_t sum; /* reads what a record points to */

static void check(const struct smalti_dataset_record *record, int64_t index, int64_t size)
{
	if (record->index != index || strlen(record->key) > SMALTI_KEY_BYTES ||
	    !smalti_utf8_valid(record->key, strlen(record->key)))
		abort();
	for (int i = 0; i < KEYS; i++) {
		const struct smalti_caption_text *caption = &record->captions[i];
		for (size_t j = 0; caption->text && j < caption->length; j++)
			sum += (unsigned char)caption->text[j];
		sum += caption->problem ? strlen(caption->problem) : 0;
	}
	const struct smalti_image_source *image = &record->image;
	if (image->path && image->bytes >= 0 &&
	    (image->offset < 0 || image->offset > size || image->bytes > size - image->offset))
		abort();
}

/* Item after item, then each by itself: its key is the same. */
static void read_all(struct smalti_dataset *dataset, int64_t size)
{
	const int64_t count = smalti_dataset_info(dataset)->count;
	for (int64_t i = 0; i <= 2 * count; i++) {
		struct smalti_error error = SMALTI_NO_ERROR, seeking = SMALTI_NO_ERROR;
		struct smalti_dataset_record record;
		const int64_t index = i <= count ? i : 2 * count - i;
		if (i > count && smalti_dataset_seek(dataset, index, &seeking) < 0)
			abort();
		const enum smalti_dataset_status status = smalti_dataset_next(dataset, &record, &error);
		if (status == SMALTI_DATASET_FAILED || (status == SMALTI_DATASET_END) != (index == count) ||
		    (status == SMALTI_DATASET_BAD) != (error.code != SMALTI_OK))
			abort();
		if (status != SMALTI_DATASET_END)
			check(&record, index, size);
	}
}

/* Whatever the list, it is refused, or read to its end, from anywhere. */
FUZZER(data, size)
{
	static int file = -1;
	if (file < 0)
		file = make_file();
	if (size < 1)
		return 0;
	char path[64];
	snprintf(path, sizeof(path), "%s/x.%s", directory, names[data[0] % NAMES]);
	if (ftruncate(file, 0) || pwrite(file, data + 1, size - 1, 0) != (ssize_t)size - 1)
		abort();
	const struct smalti_dataset_options options = {.paths = (const char *const[]){path},
						       .path_count = 1,
						       .captions = {"prompt", "txt"},
						       .caption_count = KEYS,
						       .images = data[0] & 64};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_dataset *dataset = smalti_dataset_open(&options, &error);
	if (!dataset != (error.code != SMALTI_OK))
		abort();
	if (dataset)
		read_all(dataset, smalti_is_gzip(data + 1, size - 1) ? INT64_MAX : (int64_t)size - 1);
	smalti_dataset_close(dataset);
	return 0;
}
