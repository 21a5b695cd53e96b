/* SPDX-License-Identifier: Apache-2.0 */
#include "bad_dataset.h"
#include "dataset/dataset.h"
#include "harness.h"
#include "jobs/input_image.h"

#include <stdlib.h>
#include <string.h>

/* Where an item fails, and why. */
struct outcome {
	const char *stage; /* NULL: nowhere */
	struct smalti_error error;
};

static int read_image(const char *path, struct smalti_error *error)
{
	const struct smalti_input_options options = {.image_size = 256};
	struct smalti_input_image *image = smalti_input_image_open(path, NULL, 0, &options, error);
	if (!image)
		return -1;
	const struct smalti_input_info *info = smalti_input_image_info(image);
	float *rgb = malloc((size_t)(info->height * info->width * 3) * sizeof(*rgb));
	const int status = smalti_input_image_rows(image, 0, info->height, rgb, error);
	free(rgb);
	smalti_input_image_close(image);
	return status;
}

static struct outcome try_item(enum smalti_dataset_status status, const struct smalti_dataset_record *record,
			       const struct smalti_error *error)
{
	struct outcome outcome = {.error = *error};
	const struct smalti_caption_text *caption = &record->captions[0];
	if (status == SMALTI_DATASET_BAD) {
		outcome.stage = "list";
	} else if (!caption->text || caption->problem) {
		outcome.stage = "caption";
		smalti_fail(&outcome.error, SMALTI_EFORMAT, "%s",
			    caption->problem ? caption->problem : "no prompt");
	} else if (read_image(record->image.path, &outcome.error) < 0) {
		outcome.stage = "picture";
	}
	return outcome;
}

/* Of a data set with all that can be wrong each item is what it was meant to be. */
static void every_bad_item_is_told(void)
{
	char path[512];
	const char *directory = test_scratch();
	bad_dataset_write(directory);
	snprintf(path, sizeof(path), "%s/InternData/data_info.json", directory);
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_dataset_options options = {.paths = (const char *const[]){path},
						       .path_count = 1,
						       .captions = {"prompt"},
						       .caption_count = 1,
						       .images = true};
	struct smalti_dataset *dataset = smalti_dataset_open(&options, &error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dataset);
	CU_ASSERT_EQUAL(smalti_dataset_info(dataset)->count, BAD_ITEMS);
	for (int i = 0; i < BAD_ITEMS; i++) {
		const struct bad_item *item = &bad_items[i];
		struct smalti_error why = SMALTI_NO_ERROR;
		struct smalti_dataset_record record;
		const enum smalti_dataset_status status = smalti_dataset_next(dataset, &record, &why);
		const struct outcome outcome = try_item(status, &record, &why);
		CHECK(strcmp(record.key, item->key) == 0, record.key);
		CHECK(!item->stage == !outcome.stage && (!item->stage || !strcmp(item->stage, outcome.stage)),
		      item->key);
		CHECK(!item->words || strstr(outcome.error.message, item->words), outcome.error.message);
		if (item->entry && strstr(item->entry, "LONG"))
			CHECK(record.captions[0].length == BAD_LONG, item->key);
	}
	smalti_dataset_close(dataset);
}

static const struct test tests[] = {
    {"every bad item is told", every_bad_item_is_told},
};
TEST_MAIN("bad dataset", tests)
