/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/dataset.h"
#include "datasets.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct smalti_dataset *open_dataset(const char *path, const char *key, bool images,
					   struct smalti_error *error)
{
	const struct smalti_dataset_options options = {.paths = (const char *const[]){path},
						       .path_count = 1,
						       .captions = {key},
						       .caption_count = key ? 1 : 0,
						       .images = images};
	return smalti_dataset_open(&options, error);
}

/* Puts all keys into one text, a bar between them; of a bad item with an exclamation mark in front; with the
 * first caption, or its problem behind a question mark. */
static void describe(struct smalti_dataset *dataset, char *text, size_t size)
{
	text[0] = '\0';
	for (;;) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_dataset_record record;
		const enum smalti_dataset_status status = smalti_dataset_next(dataset, &record, &error);
		if (status <= SMALTI_DATASET_END)
			return;
		const struct smalti_caption_text *caption = &record.captions[0];
		const size_t used = strlen(text);
		snprintf(text + used, size - used, "%s%s%s%s%s", used ? "|" : "",
			 status == SMALTI_DATASET_BAD ? "!" : "", record.key,
			 caption->problem ? "?"
			 : caption->text  ? "="
					  : "",
			 caption->problem ? caption->problem
			 : caption->text  ? caption->text
					  : "");
	}
}

static void expect(const char *path, const char *key, bool images, const char *expected)
{
	char text[2048];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_dataset *dataset = open_dataset(path, key, images, &error);
	CHECK(dataset, error.message);
	if (!dataset)
		return;
	describe(dataset, text, sizeof(text));
	if (strcmp(text, expected) != 0)
		printf("\n    found    %s\n    expected %s", text, expected);
	CHECK(strcmp(text, expected) == 0, expected);
	smalti_dataset_close(dataset);
}

static void write_text(const char *directory, const char *path, const char *text)
{
	dataset_write_file(directory, path, text, strlen(text));
}

static void directories_are_read_in_order(void)
{
	static const char *const paths[] = {
	    "b.png",   "a/z.jpg",  "a.b.jpg", "a/.hidden.jpg", ".git/x.jpg", "B.JPEG", "a/deep/er/1.WebP",
	    "a-b.png", "notes.md", "a.gif",   "jpg",           "c.txt",      "a.txt",  "a.b.txt",
	    "a/z.txt"};
	const char *directory = test_scratch();
	for (size_t i = 0; i < COUNT(paths); i++)
		write_text(directory, paths[i], paths[i]);
	expect(directory, NULL, true, "B.JPEG|a/deep/er/1.WebP|a/z.jpg|a-b.png|a.b.jpg|b.png");
	expect(directory, "txt", true,
	       "B.JPEG|a/deep/er/1.WebP|a/z.jpg=a/z.txt|a-b.png|a.b.jpg=a.b.txt|b.png");
	expect(directory, "txt", false,
	       "B.JPEG|a/deep/er/1.WebP|a/z.jpg=a/z.txt|a-b.png|a.b.jpg=a.b.txt|a=a.txt|b.png|c=c.txt");
}

static void captions_lie_beside_images(void)
{
	const char *directory = test_scratch();
	static const char *const files[][2] = {
	    {"a.png", ""},
	    {"a.k", "in a file"},
	    {"a.json", "{\"k\": \"in an object\"}"},
	    {"b.png", ""},
	    {"b.json", "{\"k\": \"in an object\"}"},
	    {"c.png", ""},
	    {"c.json", "{\"k\": 3}"},
	    {"d.png", ""},
	    {"d.json", "{\"other\": 3}"},
	    {"e.png", ""},
	    {"e.json", "[]"},
	    {"f.png", ""},
	    {"f.k", "raw \xff"},
	    {"f.json", "broken"},
	    {"g.json", "{\"k\": \"alone\"}"},
	    {"g.x.k", "another stem"},
	    {"h.json", "{}"},
	    {"h.k", "text first"},
	};
	for (size_t i = 0; i < COUNT(files); i++)
		write_text(directory, files[i][0], files[i][1]);
	expect(directory, "k", false,
	       "a.png=in a file|b.png=in an object|c.png?k: expected a string, found 3|d.png|"
	       "e.png?k: JSON: expected an object, found an array|f.png=raw \xff|g=alone|g.x=another stem|"
	       "h=text first");
}

static void directories_with_links_end(void)
{
	const char *directory = test_scratch();
	char target[512], link[512];
	write_text(directory, "real/a.png", "a");
	write_text(directory, "z.png", "z");
	snprintf(target, sizeof(target), "%s/z.png", directory);
	snprintf(link, sizeof(link), "%s/linked.png", directory);
	CU_ASSERT_EQUAL(symlink(target, link), 0);
	snprintf(link, sizeof(link), "%s/real/loop", directory);
	CU_ASSERT_EQUAL(symlink(directory, link), 0);
	snprintf(target, sizeof(target), "%s/real", directory);
	snprintf(link, sizeof(link), "%s/second", directory);
	CU_ASSERT_EQUAL(symlink(target, link), 0);
	snprintf(link, sizeof(link), "%s/nowhere.png", directory);
	CU_ASSERT_EQUAL(symlink("absent", link), 0);
	expect(directory, NULL, true, "linked.png|nowhere.png|real/a.png|z.png");
}

static void names_that_are_not_utf8_are_bad(void)
{
	const char *directory = test_scratch();
	write_text(directory, "a\xff.png", "");
	write_text(directory, "b.png", "");
	expect(directory, NULL, true, "!a\\xff.png|b.png");
}

static void deep_directories_are_refused(void)
{
	char path[512] = "";
	for (int i = 0; i < 70; i++)
		strcat(path, "d/");
	strcat(path, "a.png");
	const char *directory = test_scratch();
	write_text(directory, path, "");
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(open_dataset(directory, NULL, true, &error) ? 0 : -1, &error, SMALTI_EUNSUPPORTED, path,
	      "more than 64 directories");
}

/* What tars are made of. */
struct member {
	char type;
	const char *name, *text;
};
enum { MEMBERS_MAX = 12 };

static const char *write_members(const struct member *members, size_t cut)
{
	const char *path = test_file("set.tar");
	FILE *tar = fopen(path, "wb");
	for (; members->name; members++)
		dataset_write_member(tar, members->type, members->name, members->text, strlen(members->text));
	static const char end[1024];
	fwrite(end, 1, sizeof(end), tar);
	const long size = ftell(tar);
	fclose(tar);
	CU_ASSERT_EQUAL(truncate(path, size - (long)cut), 0);
	return path;
}

static char long_name[300], longest_name[4200];

static const struct archive {
	const char *what;
	struct member members[MEMBERS_MAX];
	size_t cut; /* bytes off its end */
	const char *expected;
} archives[] = {
    {"grouping",
     {{'0', "./d/a.jpg", "A"},
      {'0', "./d/a.txt", "one"},
      {'0', "d/b.txt", "two"},
      {'0', "d/b.png", "B"},
      {'0', "e.txt", "three"},
      {'0', "README", "x"},
      {'0', "f.cls", "7"},
      {'0', "g.png", "G"}},
     0,
     "d/a.jpg=one|d/b.png=two|e=three|g.png"},
    {"images of one item",
     {{'0', "a.mask.png", "M"},
      {'0', "a.jpg", "A"},
      {'0', "a.png", "P"},
      {'0', "a.json", "{\"txt\": \"j\"}"},
      {'0', "b.c.jpeg", "B"},
      {'0', "b.txt", "t"},
      {'0', "b.json", "broken"}},
     0,
     "a.jpg=j|b.c.jpeg=t"},
    {"images that are not read",
     {{'0', "a.gif", "A"},
      {'0', "a.txt", "t"},
      {'0', "b.TIFF", "B"},
      {'0', "b.jpg", "J"},
      {'0', "c.d.jpg", "C"},
      {'0', "c.gif", "G"}},
     0,
     "a.gif=t|b.jpg|c.d.jpg"},
    {"what is no file",
     {{'5', "d/", ""},
      {'0', "d/a.jpg", "A"},
      {'2', "d/a.txt", ""},
      {'g', "pax_global", "19 comment=abcdefgh\n"},
      {'0', "d/._a.jpg", "x"},
      {'0', "d/a.txt", "still a"}},
     0,
     "d/a.jpg=still a"},
    {"a key twice",
     {{'0', "a.jpg", "A"},
      {'0', "a.txt", "1"},
      {'0', "a.jpg", "A"},
      {'0', "a.txt", "2"},
      {'0', "b.jpg", "B"},
      {'0', "a.jpg", "A"}},
     0,
     "a.jpg=1|!a.jpg|b.jpg|!a.jpg"},
    {"long names", {{'0', long_name, "A"}}, 0, long_name},
    {"pax",
     {{'x', "pax", "17 path=p\xc3\xa4x.jpg\n"},
      {'0', "short", "A"},
      {'x', "pax", "14 path=q.txt\n"},
      {'0', "short", "Q"}},
     0,
     "p\xc3\xa4x.jpg|q=Q"},
    {"a damaged pax header",
     {{'0', "a.jpg", "A"}, {'x', "pax", "99 path=b.jpg\n"}, {'0', "c.jpg", "C"}},
     0,
     "a.jpg|!000000001"},
    {"cut at its end", {{'0', "a.jpg", "A"}, {'0', "b.jpg", "B"}}, 1024, "a.jpg|b.jpg"},
    {"cut within padding", {{'0', "a.jpg", "A"}, {'0', "b.jpg", "B"}}, 1024 + 500, "a.jpg|b.jpg"},
    {"cut within a file", {{'0', "a.jpg", "A"}, {'0', "b.jpg", "Bytes"}}, 1024 + 510, "a.jpg|!b.jpg"},
    {
	"cut within a header",
	{{'0', "a.jpg", "A"}, {'0', "b.jpg", "B"}},
	1024 + 512 + 30,
	"a.jpg|!000000001",
    },
    {"a sparse file", {{'0', "a.jpg", "A"}, {'S', "b.jpg", "B"}, {'0', "c.jpg", "C"}}, 0, "a.jpg|!b.jpg"},
    {"a name past the longest", {{'0', "a.jpg", "A"}, {'0', longest_name, "B"}}, 0, "a.jpg|!000000001"},
};

static void tars_are_grouped(void)
{
	memset(long_name, 'n', sizeof(long_name) - 5);
	memcpy(long_name + sizeof(long_name) - 5, ".jpg", 5);
	memset(longest_name, 'n', sizeof(longest_name) - 5);
	memcpy(longest_name + sizeof(longest_name) - 5, ".jpg", 5);
	for (size_t i = 0; i < COUNT(archives); i++)
		expect(write_members(archives[i].members, archives[i].cut), "txt", true,
		       archives[i].expected);
}

#define JPEG "\xff\xd8\xff and so on"

/* Of members that are read with captions and images, what comes to nothing, and what is known of each item.
 */
static void what_a_tar_passes_over_is_counted(void)
{
	static const struct {
		struct member members[MEMBERS_MAX];
		int passed;
		const char *first;
		const char *items; /* what is found, or the stem that is split behind a star */
	} cases[] = {
	    {{{'0', "a.jpg", "A"},
	      {'0', "a.txt", "t"},
	      {'0', "a.cls", "7"},
	      {'0', "README", "long enough to be looked at"}},
	     0,
	     "",
	     "jpg, txt, cls|"},
	    {{{'0', "i 0.25.jpg", "A"},
	      {'0', "i 0.25.txt", "t"},
	      {'0', "i 0.5.jpg", "A"},
	      {'0', "i 0.5.txt", "t"}},
	     3,
	     "i 0.25.txt of ",
	     "25.jpg, 25.txt, 5.jpg, 5.txt|"},
	    {{{'0', "a.mask.png", "M"}, {'0', "a.jpg", "A"}}, 1, "a.mask.png of ", "mask.png, jpg|"},
	    {{{'0', "a", JPEG}, {'0', "b.jpg_large", JPEG}, {'0', "c.jfif", "C"}}, 2, "a of ", "jfif|"},
	    {{{'0', "0.1.json", "{}"}, {'0', "0.1.txt", "t"}, {'0', "x.json", "{\"k\": 1}"}},
	     2,
	     "0.1.json of ",
	     "json, k|"},
	    {{{'0', "a.jpg", "A"}, {'0', "b.jpg", "B"}, {'0', "a.txt", "1"}, {'0', "c.jpg", "C"}},
	     0,
	     "",
	     "*a|jpg|*a|jpg|"},
	    {{{'0', "a\x1b[2J.x.jpg", "A"}, {'0', "a\x1b[2J.y.jpg", "A"}}, 1, "a?[2J.y.jpg of ", NULL},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		char items[512] = "";
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_dataset_record record;
		struct smalti_dataset *dataset =
		    open_dataset(write_members(cases[i].members, 0), "txt", true, &error);
		CU_ASSERT_PTR_NOT_NULL_FATAL(dataset);
		const struct smalti_dataset_info *info = smalti_dataset_info(dataset);
		CHECK(info->passed_over == cases[i].passed, cases[i].members[0].name);
		CHECK(strncmp(info->first_passed_over, cases[i].first, strlen(cases[i].first)) == 0,
		      info->first_passed_over);
		CHECK(!info->note == !cases[i].passed, cases[i].members[0].name);
		while (cases[i].items && smalti_dataset_next(dataset, &record, &error) > SMALTI_DATASET_END)
			smalti_append(items, sizeof(items), "", "%s%s|", record.split ? "*" : "",
				      record.split ? record.split : record.found);
		CHECK(!cases[i].items || strcmp(items, cases[i].items) == 0, items);
		smalti_dataset_close(dataset);
	}
}

/* Headers with numbers that lie. */
static void absurd_sizes_are_refused(void)
{
	static const uint64_t sizes[] = {1, UINT64_C(1) << 32, UINT64_C(1) << 54, UINT64_MAX};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		unsigned char block[512];
		const char *path = test_file("set.tar");
		FILE *tar = fopen(path, "wb");
		dataset_write_member(tar, '0', "a.jpg", "A", 1);
		dataset_tar_header(block, '0', "b.jpg", sizes[i]);
		fwrite(block, 1, sizeof(block), tar);
		fclose(tar);
		expect(path, "txt", true, i < 3 ? "a.jpg|!b.jpg" : "a.jpg|!000000001");
	}
}

static const struct test tests[] = {
    {"directories are read in order", directories_are_read_in_order},
    {"captions lie beside images", captions_lie_beside_images},
    {"directories with links end", directories_with_links_end},
    {"names that are not UTF-8 are bad", names_that_are_not_utf8_are_bad},
    {"deep directories are refused", deep_directories_are_refused},
    {"tars are grouped", tars_are_grouped},
    {"what a tar passes over is counted", what_a_tar_passes_over_is_counted},
    {"absurd sizes are refused", absurd_sizes_are_refused},
};
TEST_MAIN("dataset files", tests)
