/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

/* In the order of their names, directory by directory, as a directory gives them. */
static const struct dataset_item items[] = {
    {"a/one.jpg", {"a star", "a star, \"large\",\nand red"}},
    {"a/two.PNG", {"", "tab\there"}},
    {"b/a.webp", {"d\xc3\xa9j\xc3\xa0 vu", "{\"not\": [\"an object\"]}"}},
    {"b/c/a.jpeg", {"back\\slash, comma", "\xf0\x9f\x8c\x9f"}},
    {"b/d.png", {"  blanks  ", "]"}},
    {"\xc3\xbc/a b.jpg", {"'", ""}},
};
enum { ITEMS = COUNT(items) };

/* The bytes that an image's source names, as text. */
static const char *read_source(const struct smalti_image_source *source)
{
	static char text[256];
	FILE *file = source->path ? fopen(source->path, "rb") : NULL;
	text[0] = '\0';
	if (!file)
		return "(none)";
	fseek(file, (long)source->offset, SEEK_SET);
	const size_t max = source->bytes < 0 ? sizeof(text) - 1 : (size_t)source->bytes;
	text[fread(text, 1, max, file)] = '\0';
	fclose(file);
	return text;
}

static bool same(const struct smalti_caption_text *found, const char *expected)
{
	return found->text && !found->problem && found->length == strlen(expected) &&
	       memcmp(found->text, expected, found->length) == 0;
}

static void check_item(const struct smalti_dataset_record *record, int index, const char *what)
{
	const struct dataset_item *item = &items[index];
	CHECK(record->index == index, what);
	CHECK(strcmp(record->key, item->path) == 0, record->key);
	for (int i = 0; i < DATASET_CAPTIONS; i++)
		CHECK(same(&record->captions[i], item->captions[i]), what);
}

static void check_next(struct smalti_dataset *dataset, int index, const char *what)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_dataset_record record;
	const enum smalti_dataset_status status = smalti_dataset_next(dataset, &record, &error);
	CHECK(status == SMALTI_DATASET_RECORD, error.message);
	if (status == SMALTI_DATASET_RECORD)
		check_item(&record, index, what);
}

static void check_all(struct smalti_dataset *dataset, const char *what)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_dataset_record record;
	for (int i = 0; i < ITEMS; i++)
		check_next(dataset, i, what);
	CHECK(smalti_dataset_next(dataset, &record, &error) == SMALTI_DATASET_END, what);
	CHECK(error.code == SMALTI_OK, error.message);
}

static void all_formats_give_the_same(void)
{
	uint64_t digest = 0;
	for (int i = 0; i < DATASET_FORMATS; i++) {
		const struct dataset_format *format = &dataset_formats[i];
		const char *directory = test_scratch();
		struct smalti_error error = SMALTI_NO_ERROR;
		format->write(directory, items, ITEMS);
		for (int images = 0; images < 2; images++) {
			struct smalti_dataset *dataset =
			    dataset_open(directory, format->file, images, &error);
			CHECK(dataset, error.message);
			if (!dataset)
				continue;
			CHECK(smalti_dataset_info(dataset)->count == ITEMS, format->name);
			struct smalti_dataset_digests digests;
			digests = smalti_dataset_info(dataset)->digests;
			digest = digest ? digest : digests.keys;
			CHECK(digests.keys == digest, format->name);
			check_all(dataset, format->name);
			smalti_dataset_close(dataset);
		}
	}
}

static void images_are_where_the_record_says(void)
{
	for (int i = 0; i < DATASET_FORMATS; i++) {
		const struct dataset_format *format = &dataset_formats[i];
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *directory = test_scratch();
		dataset_formats[4].write(directory, items, ITEMS); /* the images */
		format->write(directory, items, ITEMS);
		struct smalti_dataset *dataset = dataset_open(directory, format->file, true, &error);
		CHECK(dataset, error.message);
		for (int j = 0; dataset && j < ITEMS; j++) {
			struct smalti_dataset_record record;
			CHECK(smalti_dataset_next(dataset, &record, &error) == SMALTI_DATASET_RECORD,
			      error.message);
			CHECK(strcmp(read_source(&record.image), items[j].path) == 0, record.image.path);
		}
		smalti_dataset_close(dataset);
		dataset = dataset_open(directory, format->file, false, &error);
		struct smalti_dataset_record record;
		CHECK(smalti_dataset_next(dataset, &record, &error) == SMALTI_DATASET_RECORD, error.message);
		CHECK(!record.image.path, format->name);
		smalti_dataset_close(dataset);
	}
}

static void seeking_equals_reading(void)
{
	for (int i = 0; i < DATASET_FORMATS; i++) {
		const struct dataset_format *format = &dataset_formats[i];
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *directory = test_scratch();
		format->write(directory, items, ITEMS);
		struct smalti_dataset *dataset = dataset_open(directory, format->file, true, &error);
		for (int j = 0; dataset && j <= ITEMS * ITEMS; j++) {
			const int index = j * 5 % (ITEMS + 1);
			SUCCEEDS(smalti_dataset_seek(dataset, index, &error), &error, format->name);
			if (index < ITEMS)
				check_next(dataset, index, format->name);
		}
		const int64_t wrong[] = {-1, ITEMS + 1};
		for (size_t j = 0; j < COUNT(wrong); j++) {
			struct smalti_error why = SMALTI_NO_ERROR;
			FAILS(smalti_dataset_seek(dataset, wrong[j], &why), &why, SMALTI_EINVAL, format->name,
			      "expected 0 to 6");
		}
		smalti_dataset_close(dataset);
	}
}

enum { MANY = 40000 }; /* more than twice as many as places are kept */

static void seeking_works_among_many(void)
{
	const char *directory = test_scratch();
	char path[512];
	snprintf(path, sizeof(path), "%s/many.jsonl", directory);
	FILE *file = fopen(path, "w");
	for (int i = 0; i < MANY; i++)
		fprintf(file, "{\"id\": %d, \"prompt\": \"%d\", \"longer\": null}%s\n", i, i,
			i % 7 ? "" : "\n \n");
	fclose(file);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_dataset *dataset = dataset_open(directory, "many.jsonl", false, &error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dataset);
	CU_ASSERT_EQUAL(smalti_dataset_info(dataset)->count, MANY);
	uint64_t state = 7;
	for (int i = 0; i < 300; i++) {
		const int index = i < 4 ? MANY - 1 - i : (int)((test_random(&state) + 1) * 0.5 * MANY);
		char expected[16];
		struct smalti_dataset_record record;
		snprintf(expected, sizeof(expected), "%d", index);
		SUCCEEDS(smalti_dataset_seek(dataset, index, &error), &error, expected);
		CU_ASSERT_EQUAL(smalti_dataset_next(dataset, &record, &error), SMALTI_DATASET_RECORD);
		CHECK(strcmp(record.key, expected) == 0 && same(&record.captions[0], expected), record.key);
		CU_ASSERT_EQUAL(record.index, index);
		CU_ASSERT_TRUE(!record.captions[1].text && !record.captions[1].problem);
	}
	smalti_dataset_close(dataset);
}

static bool stop_at_half(void *user, double share)
{
	*(double *)user = share;
	return share < 0.5;
}

static void opening_can_be_stopped(void)
{
	const char *directory = test_scratch();
	char path[512];
	snprintf(path, sizeof(path), "%s/many.csv", directory);
	FILE *file = fopen(path, "w");
	fputs("id,prompt\n", file);
	for (int i = 0; i < MANY; i++)
		fprintf(file, "%05d,x\n", i);
	fclose(file);
	double share = 0;
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_dataset_options options = {.paths = (const char *const[]){path},
						       .path_count = 1,
						       .captions = {"prompt"},
						       .caption_count = 1,
						       .on_progress = stop_at_half,
						       .user = &share};
	CU_ASSERT_PTR_NULL(smalti_dataset_open(&options, &error));
	CU_ASSERT_EQUAL(error.code, SMALTI_ECANCELLED);
	CU_ASSERT_TRUE(share >= 0.5 && share < 0.6);
}

static void images_of_lists_have_their_directory(void)
{
	static const struct {
		const char *list, *image_root, *expected;
	} cases[] = {
	    {"set/InternData/list.jsonl", NULL, "set/InternImgs/p.png"},
	    {"set/other/list.jsonl", NULL, "set/other/p.png"},
	    {"set/InternData/list.jsonl", "set/else", "set/else/p.png"},
	};
	const char *directory = test_scratch();
	dataset_write_file(directory, "set/else/p.png", "x", 1);
	for (size_t i = 0; i < COUNT(cases); i++) {
		char path[512], image_root[512], expected[512], *real;
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_dataset_record record;
		static const char text[] = "{\"path\": \"p.png\"}\n{\"path\": \"/abs/p.png\"}\n";
		dataset_write_file(directory, cases[i].list, text, sizeof(text) - 1);
		real = realpath(directory, NULL);
		snprintf(path, sizeof(path), "%s/%s", real, cases[i].list);
		snprintf(image_root, sizeof(image_root), "%s/%s", real,
			 cases[i].image_root ? cases[i].image_root : "");
		snprintf(expected, sizeof(expected), "%s/%s", real, cases[i].expected);
		free(real);
		const struct smalti_dataset_options options = {.paths = (const char *const[]){path},
							       .path_count = 1,
							       .image_root =
								   cases[i].image_root ? image_root : NULL,
							       .images = true};
		struct smalti_dataset *dataset = smalti_dataset_open(&options, &error);
		CHECK(dataset, error.message);
		smalti_dataset_next(dataset, &record, &error);
		CHECK(strcmp(record.image.path, expected) == 0, record.image.path);
		CHECK(record.image.bytes == -1 && record.image.offset == 0, cases[i].list);
		smalti_dataset_next(dataset, &record, &error);
		CHECK(strcmp(record.image.path, "/abs/p.png") == 0, record.image.path);
		smalti_dataset_close(dataset);
	}
}

static void the_directory_of_images_has_to_fit(void)
{
	const char *directory = test_scratch();
	static char list[512];
	dataset_write_file(directory, "x.jsonl", "", 0);
	snprintf(list, sizeof(list), "%s/x.jsonl", directory);
	const struct smalti_dataset_options cases[] = {
	    {.paths = (const char *const[]){list}, .path_count = 1, .image_root = list},
	    {.paths = (const char *const[]){directory}, .path_count = 1, .image_root = directory},
	    {.paths = (const char *const[]){list}, .path_count = 1, .caption_count = 9}};
	static const char *const words[] = {"expected a directory", "is for lists", "0 to 8 captions"};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_dataset_open(&cases[i], &error) ? 0 : -1, &error, SMALTI_EINVAL, words[i],
		      words[i]);
	}
}

static const struct test tests[] = {
    {"all formats give the same", all_formats_give_the_same},
    {"images are where the record says", images_are_where_the_record_says},
    {"seeking equals reading", seeking_equals_reading},
    {"seeking works among many", seeking_works_among_many},
    {"opening can be stopped", opening_can_be_stopped},
    {"images of lists have their directory", images_of_lists_have_their_directory},
    {"the directory of images has to fit", the_directory_of_images_has_to_fit},
};

TEST_MAIN("dataset", tests)
