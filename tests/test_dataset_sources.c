/* SPDX-License-Identifier: Apache-2.0
 *
 * What a data set is read from: several tars, a directory of them, a stream; which captions are found. */
#include "base/file.h"
#include "dataset/dataset_format.h"
#include "datasets.h"
#include "harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static int join(void *user, char *name, struct smalti_error *error)
{
	char *text = user;
	(void)error;
	snprintf(text + strlen(text), 256 - strlen(text), "%s%s", *text ? " " : "", name);
	free(name);
	return 0;
}

static void braces_are_expanded(void)
{
	static const struct {
		const char *pattern, *names; /* NULL: more than 20 */
	} cases[] = {
	    {"a.tar", "a.tar"},
	    {"{0..2}.tar", "0.tar 1.tar 2.tar"},
	    {"x-{008..011}.tar", "x-008.tar x-009.tar x-010.tar x-011.tar"},
	    {"{9..11}", "9 10 11"},
	    {"{00..2}", "00 01 02"},
	    {"{2..0}", "2 1 0"},
	    {"{a,b,}c", "ac bc c"},
	    {"{a,b}{1..2}", "a1 a2 b1 b2"},
	    {"{a}", "{a}"},
	    {"{}{1..2}", "{}1 {}2"},
	    {"{1..}", "{1..}"},
	    {"{1..2", "{1..2"},
	    {"1..2}", "1..2}"},
	    {"{1...2}", "{1...2}"},
	    {"{0..20}", NULL},
	    {"{0..999999999999}", NULL},
	    {"{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}", NULL},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		char text[256] = "";
		struct smalti_error error = SMALTI_NO_ERROR;
		const int status = smalti_braces_expand(cases[i].pattern, 20, join, text, &error);
		if (!cases[i].names) {
			FAILS(status, &error, SMALTI_EINVAL, cases[i].pattern, "more than 20 names");
			continue;
		}
		SUCCEEDS(status, &error, cases[i].pattern);
		CHECK(strcmp(text, cases[i].names) == 0, text);
	}
}

/* A tar of so many items, whose names begin with `stem`; the image's bytes are its name. `cut`: bytes off
 * its end. */
static void write_tar(const char *directory, const char *name, const char *stem, int items, long cut)
{
	char path[600];
	static const char end[1024];
	dataset_write_file(directory, name, "", 0);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *tar = fopen(path, "wb");
	for (int i = 0; i < items; i++) {
		char member[64];
		snprintf(member, sizeof(member), "%s%d.jpg", stem, i);
		dataset_write_member(tar, '0', member, member, strlen(member));
		snprintf(member, sizeof(member), "%s%d.txt", stem, i);
		dataset_write_member(tar, '0', member, "caption", 7);
	}
	fwrite(end, 1, sizeof(end), tar);
	const long size = ftell(tar);
	fclose(tar);
	CU_ASSERT_EQUAL(truncate(path, size - cut), 0);
}

/* Opens what is in the directory, with the names separated by blanks, for the caption that is found. */
static struct smalti_dataset *open_names(const char *directory, const char *names, bool images,
					 struct smalti_error *error)
{
	char copy[256], paths[4][600], *rest = copy;
	const char *list[4];
	struct smalti_dataset_options options = {.paths = list, .find_caption = true, .images = images};
	snprintf(copy, sizeof(copy), "%s", names);
	for (char *name; (name = strsep(&rest, " "));) {
		snprintf(paths[options.path_count], sizeof(*paths), "%s%s%s", directory, *name ? "/" : "",
			 name);
		list[options.path_count] = strcmp(name, "-") ? paths[options.path_count] : name;
		options.path_count++;
	}
	return smalti_dataset_open(&options, error);
}

/* All keys, of a bad item with an exclamation mark in front; the same backwards, by seeking. */
static void check_keys(struct smalti_dataset *dataset, const char *expected)
{
	char text[512] = "", places[512] = "";
	for (int64_t i = 0; i < smalti_dataset_info(dataset)->count; i++) {
		struct smalti_dataset_record record;
		struct smalti_error error = SMALTI_NO_ERROR;
		const bool bad = smalti_dataset_next(dataset, &record, &error) == SMALTI_DATASET_BAD;
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s", i ? " " : "",
			 bad ? "!" : "", record.key);
		CHECK(bad || !record.image.path || strstr(record.image.path, ".tar") ||
			  record.image.bytes < 0,
		      record.key);
	}
	CHECK(strcmp(text, expected) == 0, text);
	for (int64_t i = smalti_dataset_info(dataset)->count; i-- > 0;) {
		struct smalti_dataset_record record;
		struct smalti_error error = SMALTI_NO_ERROR, bad = SMALTI_NO_ERROR;
		char all[512];
		SUCCEEDS(smalti_dataset_seek(dataset, i, &error), &error, text);
		const bool is_bad = smalti_dataset_next(dataset, &record, &bad) == SMALTI_DATASET_BAD;
		snprintf(all, sizeof(all), "%s%s%s%s", is_bad ? "!" : "", record.key, *places ? " " : "",
			 places);
		memcpy(places, all, sizeof(places));
	}
	CHECK(strcmp(places, expected) == 0, places);
}

/* a.tar, b.tar (empty), c.tar (cut short) and d/a.tar, in a directory with what else img2dataset leaves
 * there.
 */
static const char *write_tars(void)
{
	const char *directory = test_scratch();
	write_tar(directory, "a.tar", "x", 2, 0);
	write_tar(directory, "b.tar", "x", 0, 0);
	write_tar(directory, "c.tar", "y", 2, 1024 + 3 * 512);
	write_tar(directory, "d/a.tar", "z/", 1, 0);
	dataset_write_file(directory, "a_stats.json", "{}", 2);
	dataset_write_file(directory, "a.parquet", "PAR1", 4);
	return directory;
}

static void several_tars_are_one_data_set(void)
{
	static const struct {
		const char *names, *keys;
	} cases[] = {
	    {"", "a/x0.jpg a/x1.jpg c/y0.jpg !c/y1.jpg d/a/z/0.jpg"},
	    {"a.tar", "x0.jpg x1.jpg"},
	    {"a.tar b.tar c.tar", "a/x0.jpg a/x1.jpg c/y0.jpg !c/y1.jpg"},
	    {"{a,b}.tar c.tar", "a/x0.jpg a/x1.jpg c/y0.jpg !c/y1.jpg"},
	    {"{c,a}.tar", "c/y0.jpg !c/y1.jpg a/x0.jpg a/x1.jpg"},
	    {"{d..a}.tar {a..a}.tar", NULL},
	    {"b.tar d/a.tar", "a/z/0.jpg"},
	    {"d", "a/z/0.jpg"},
	};
	const char *directory = write_tars();
	for (int i = 0; i < COUNT(cases); i++)
		for (int images = 0; images < 2; images++) {
			struct smalti_error error = SMALTI_NO_ERROR;
			struct smalti_dataset *dataset =
			    open_names(directory, cases[i].names, images, &error);
			CHECK(!dataset == !cases[i].keys, error.message);
			if (dataset && cases[i].keys)
				check_keys(dataset, cases[i].keys);
			smalti_dataset_close(dataset);
		}
}

static void sources_are_refused(void)
{
	static const struct {
		const char *names;
		enum smalti_code code;
		const char *words;
	} cases[] = {
	    {"a.tar d/a.tar", SMALTI_EINVAL, "have the same name"},
	    {"a.tar a.tar", SMALTI_EINVAL, "have the same name"},
	    {"a.tar d", SMALTI_EINVAL, "each has to be a tar"},
	    {"a.tar list.jsonl", SMALTI_EFORMAT, "list.jsonl: of several data sets each has to be a tar"},
	    {"a.tar a.parquet", SMALTI_EUNSUPPORTED, "python/parquet_to_jsonl.py"},
	    {"a.tar nowhere.tar", SMALTI_ENOENT, "nowhere.tar: cannot be opened"},
	    {"{0..3}.tar", SMALTI_ENOENT, "0.tar: cannot be opened"},
	    {"a.tar -", SMALTI_EINVAL, "standard input: is a data set of its own"},
	    {"empty", SMALTI_EFORMAT, "empty: no item in it"},
	    {"tiffs", SMALTI_EFORMAT, "passed over 2 .tif, 1 .gif"},
	    {"bare", SMALTI_EFORMAT,
	     "no caption under txt, prompt, caption or text in the first 1 of its items"},
	    {"broken.json", SMALTI_EFORMAT, "none of its 1 items can be read; the first: line 1: "},
	    {"bare.csv", SMALTI_EFORMAT,
	     "expected txt, prompt, caption or text in its first line, found path, label"},
	};
	const char *directory = write_tars();
	dataset_write_file(directory, "list.jsonl", "{}\n", 3);
	dataset_write_file(directory, "empty/.x", "", 0);
	dataset_write_file(directory, "tiffs/a.tif", "", 0);
	dataset_write_file(directory, "tiffs/b.TIF", "", 0);
	dataset_write_file(directory, "tiffs/d/b.gif", "", 0);
	dataset_write_file(directory, "bare/a.png", "", 0);
	dataset_write_file(directory, "broken.json", BYTES("{\"path\":"));
	dataset_write_file(directory, "bare.csv", BYTES("path,label\na.png,x\n"));
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(open_names(directory, cases[i].names, true, &error) ? 0 : -1, &error, cases[i].code,
		      cases[i].words, cases[i].words);
	}
}

static void what_a_directory_has_else_is_noted(void)
{
	const char *directory = test_scratch();
	static const char *const files[] = {"a.png",   "b.jpg", "b.TIFF",     "c.tiff", "d.gif",
					    "old.tar", "a.txt", "saved.jfif", "z.jpe"};
	for (int i = 0; i < COUNT(files); i++)
		dataset_write_file(directory, files[i], "x", 1);
	dataset_write_file(directory, "d/bare", BYTES("\xff\xd8\xff\xe0 and so on"));
	dataset_write_file(directory, "x.jpg_large", BYTES("\x89PNG\r\n\x1a\n and so on"));
	dataset_write_file(directory, "y.dat", BYTES("no image, whatever its name"));
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_dataset *dataset = open_names(directory, "", true, &error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dataset);
	check_keys(dataset, "a.png b.jpg saved.jfif z.jpe");
	const char *note = smalti_dataset_info(dataset)->note;
	CHECK(note && strstr(note, "passed over 2 .tiff, 1 .gif, 2 of other names, 1 .tar, such as b.TIFF"),
	      note ? note : "no note");
	CU_ASSERT_EQUAL(smalti_dataset_info(dataset)->passed_over, 6);
	CU_ASSERT_STRING_EQUAL(smalti_dataset_info(dataset)->first_passed_over, "b.TIFF");
	smalti_dataset_close(dataset);
	dataset = open_names(write_tars(), "", true, &error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dataset);
	CU_ASSERT_PTR_NULL(smalti_dataset_info(dataset)->note);
	smalti_dataset_close(dataset);
}

/* The first in the order of the keys that the first item has which has any. */
static void captions_are_found(void)
{
	static const struct {
		const char *file, *content, *key, *caption; /* of the first item */
	} cases[] = {
	    {"a.jsonl", "{\"caption\": \"c\", \"text\": \"t\"}\n", "caption", "c"},
	    {"b.jsonl", "{\"text\": \"t\", \"url\": \"u\"}\n", "text", "t"},
	    {"c.jsonl", "{\"text\": \"t\", \"prompt\": \"p\", \"caption\": \"c\"}\n", "prompt", "p"},
	    {"d.jsonl", "{\"prompt\": null, \"id\": 1}\n{\"text\": \"t\"}\n", "text", NULL},
	    {"e.jsonl", "broken\n{\"prompt\": \"\"}\n", "prompt", NULL},
	    {"f.csv", "text,txt,caption\nt,x,c\n", "txt", "x"},
	    {"g.json", "[{\"prompt\": \"p\", \"sharegpt4v\": \"s\"}]", "prompt", "p"},
	    {"h/a.prompt", "p", "prompt", "p"},
	    {"i/a.json", "{\"text\": \"t\"}", "text", "t"},
	};
	const char *directory = test_scratch();
	for (int i = 0; i < COUNT(cases); i++) {
		char name[32];
		struct smalti_error error = SMALTI_NO_ERROR, bad = SMALTI_NO_ERROR;
		struct smalti_dataset_record record;
		dataset_write_file(directory, cases[i].file, cases[i].content, strlen(cases[i].content));
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(cases[i].file, "/"), cases[i].file);
		struct smalti_dataset *dataset = open_names(directory, name, false, &error);
		CHECK(dataset, error.message);
		if (!dataset)
			continue;
		const struct smalti_dataset_info *info = smalti_dataset_info(dataset);
		CHECK(info->caption_count == 1 && strcmp(info->captions[0], cases[i].key) == 0,
		      cases[i].file);
		smalti_dataset_next(dataset, &record, &bad);
		const char *text = record.captions[0].text;
		CHECK(!text == !cases[i].caption && (!text || strcmp(text, cases[i].caption) == 0),
		      cases[i].file);
		smalti_dataset_close(dataset);
	}
}

static bool stop(void *user, double share)
{
	(void)share;
	return --*(int *)user > 0;
}

static void streams_are_kept(void)
{
	static const struct {
		int64_t bytes, limit;
		int calls; /* of the watch, until it ends it */
		enum smalti_code code;
	} cases[] = {
	    {0, 0, 99, SMALTI_OK},
	    {60000, 0, 99, SMALTI_OK},
	    {60000, 60000, 99, SMALTI_OK},
	    {60000, 59999, 99, SMALTI_EUNSUPPORTED},
	    {60000, 0, 1, SMALTI_ECANCELLED},
	};
	static char sent[60000], found[60000];
	for (int i = 0; i < COUNT(sent); i++)
		sent[i] = (char)(i * 7);
	for (int i = 0; i < COUNT(cases); i++) {
		int ends[2], calls = cases[i].calls;
		struct smalti_error error = SMALTI_NO_ERROR;
		CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
		CU_ASSERT_EQUAL(write(ends[1], sent, (size_t)cases[i].bytes), cases[i].bytes);
		close(ends[1]);
		struct smalti_spool spool = {.file = -1, .limit = cases[i].limit};
		const int status = smalti_spool_add(&spool, ends[0], "standard input", stop, &calls, &error);
		close(ends[0]);
		if (cases[i].code) {
			FAILS(status, &error, cases[i].code, "a stream", "standard input");
		} else {
			SUCCEEDS(status, &error, "a stream");
			CU_ASSERT_EQUAL(lseek(spool.file, 0, SEEK_END), cases[i].bytes);
			CU_ASSERT_EQUAL(pread(spool.file, found, sizeof(found), 0), cases[i].bytes);
			CHECK(memcmp(found, sent, (size_t)cases[i].bytes) == 0, "what was sent");
		}
		close(spool.file);
	}
}

/* A file compressed as members of so many bytes; with `tail` behind it. */
static void pack(const char *directory, const char *name, const void *bytes, size_t length, size_t member,
		 const char *tail, size_t tail_length)
{
	unsigned char *packed = malloc(2 * length + 65536);
	size_t used = 0;
	for (size_t at = 0; at < length || at == 0; at += member) {
		const size_t count = length - at < member ? length - at : member;
		z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes + at,
			      .avail_in = (uInt)count,
			      .next_out = packed + used,
			      .avail_out = (uInt)(2 * length + 65536 - used)};
		CU_ASSERT_EQUAL_FATAL(deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY),
				      Z_OK);
		CU_ASSERT_EQUAL(deflate(&z, Z_FINISH), Z_STREAM_END);
		used += z.total_out;
		deflateEnd(&z);
	}
	memcpy(packed + used, tail, tail_length);
	dataset_write_file(directory, name, packed, used + tail_length);
	free(packed);
}

/* The file of the directory, compressed as `packed`. */
static void pack_file(const char *directory, const char *name, const char *packed, size_t member)
{
	char path[600];
	size_t length;
	struct smalti_error error = SMALTI_NO_ERROR;
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	char *bytes = smalti_file_read(path, 1 << 24, &length, &error);
	SUCCEEDS(bytes ? 0 : -1, &error, path);
	pack(directory, packed, bytes, length, member, "", 0);
	free(bytes);
}

/* Keys, captions and images are those of what was compressed. */
static void check_same(const char *directory, const char *names, const char *packed)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_dataset *all[] = {open_names(directory, names, true, &error),
					open_names(directory, packed, true, &error)};
	CU_ASSERT_FATAL(all[0] && all[1]);
	struct smalti_dataset_digests digests[2];
	digests[0] = smalti_dataset_info(all[0])->digests;
	digests[1] = smalti_dataset_info(all[1])->digests;
	CHECK(memcmp(&digests[0], &digests[1], sizeof(digests[0])) == 0, packed);
	const int64_t count = smalti_dataset_info(all[0])->count;
	for (int64_t i = 0; i < 2 * count && count == smalti_dataset_info(all[1])->count; i++) {
		struct smalti_dataset_record records[2];
		char bytes[2][64] = {{0}};
		for (int k = 0; k < 2; k++) {
			struct smalti_error bad = SMALTI_NO_ERROR;
			smalti_dataset_seek(all[k], i < count ? i : 2 * count - 1 - i, &error);
			smalti_dataset_next(all[k], &records[k], &bad);
			const struct smalti_image_source *image = &records[k].image;
			const int file =
			    image->path && image->bytes >= 0 ? open(image->path, O_RDONLY | O_CLOEXEC) : -1;
			if (file >= 0) {
				CU_ASSERT_EQUAL(pread(file, bytes[k], (size_t)image->bytes, image->offset),
						image->bytes);
				close(file);
			}
		}
		const struct smalti_caption_text *a = records[0].captions, *b = records[1].captions;
		CHECK(strcmp(records[0].key, records[1].key) == 0, records[1].key);
		CHECK(!a->text == !b->text && (!a->text || strcmp(a->text, b->text) == 0), records[1].key);
		CHECK(memcmp(bytes[0], bytes[1], sizeof(bytes[0])) == 0, records[1].key);
	}
	smalti_dataset_close(all[0]);
	smalti_dataset_close(all[1]);
}

static void what_gzip_compressed_is_the_same(void)
{
	static const struct {
		const char *names, *packed;
	} cases[] = {
	    {"a.tar", "p/a.tar.gz"},
	    {"a.tar", "p/A.TGZ"},
	    {"a.tar", "p/other"},
	    {"c.tar", "p/c.tgz"}, /* cut short before it was compressed */
	    {"list.jsonl", "list.jsonl.gz"},
	    {"list.tsv", "list.tsv.gz"},
	    {"a.tar b.tar c.tar d/e.tar", "a.tar p/b.tar.gz p/c.tgz d/e.tar"},
	    {"a.tar b.tar c.tar", "p/a.tar.gz p/b.tar.gz p/c.tgz"},
	    {"q", "r"},
	};
	static const size_t members[] = {1 << 20, 700};
	const char *directory = write_tars();
	write_tar(directory, "d/e.tar", "z/", 3, 0);
	write_tar(directory, "q/00000.tar", "u", 2, 0);
	write_tar(directory, "q/00001.tar", "v", 30, 0);
	dataset_write_file(directory, "list.jsonl",
			   BYTES("{\"path\":\"a.png\",\"text\":\"A\"}\n{\"path\":\"b.png\"}\n"));
	dataset_write_file(directory, "list.tsv", BYTES("path\ttext\na.png\t1,2\n"));
	for (int m = 0; m < COUNT(members); m++) {
		pack_file(directory, "a.tar", "p/a.tar.gz", members[m]);
		pack_file(directory, "a.tar", "p/A.TGZ", members[m]);
		pack_file(directory, "a.tar", "p/other", members[m]);
		pack_file(directory, "b.tar", "p/b.tar.gz", members[m]);
		pack_file(directory, "c.tar", "p/c.tgz", members[m]);
		pack_file(directory, "list.jsonl", "list.jsonl.gz", members[m]);
		pack_file(directory, "list.tsv", "list.tsv.gz", members[m]);
		pack_file(directory, "q/00000.tar", "r/00000.tar.gz", members[m]);
		pack_file(directory, "q/00001.tar", "r/00001.tgz", members[m]);
		for (int i = 0; i < COUNT(cases); i++)
			check_same(directory, cases[i].names, cases[i].packed);
	}
}

static void what_gzip_damaged_is_refused(void)
{
	static const char text[] = "{\"id\":1}\n{\"id\":2}\n", zeros[700];
	static const struct {
		const char *tail;
		size_t length;
		const char *words; /* NULL: it is read */
	} cases[] = {
	    {"", 0, NULL},
	    {zeros, sizeof(zeros), NULL},
	    {BYTES("garbage"), "damaged in front of byte"},
	    {BYTES("\0\0\0garbage"), "damaged in front of byte"},
	    {BYTES("\x1f\x8b"), "cut short at byte"},
	    {BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3\xff\xff"), "damaged in front of byte"},
	};
	const char *directory = test_scratch();
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		pack(directory, "x.jsonl.gz", text, strlen(text), 7, cases[i].tail, cases[i].length);
		struct smalti_dataset *dataset = dataset_open(directory, "x.jsonl.gz", false, &error);
		if (cases[i].words)
			FAILS(dataset ? 0 : -1, &error, SMALTI_EFORMAT, cases[i].words, "x.jsonl.gz",
			      cases[i].words);
		else
			CHECK(dataset && smalti_dataset_info(dataset)->count == 2, error.message);
		smalti_dataset_close(dataset);
	}
	/* Cut anywhere, also where a line or a member ends. */
	char path[600];
	snprintf(path, sizeof(path), "%s/x.jsonl.gz", directory);
	pack(directory, "x.jsonl.gz", text, strlen(text), sizeof(text), "", 0);
	struct stat info;
	CU_ASSERT_EQUAL_FATAL(stat(path, &info), 0);
	for (int64_t length = info.st_size - 1; length >= 2; length--) {
		struct smalti_error error = SMALTI_NO_ERROR;
		CU_ASSERT_EQUAL(truncate(path, length), 0);
		FAILS(dataset_open(directory, "x.jsonl.gz", false, &error) ? 0 : -1, &error, SMALTI_EFORMAT,
		      "cut", "x.jsonl.gz", "cut short at byte");
	}
}

/* A megabyte that would be a gigabyte: no more is kept than may be. */
static void gzip_bombs_are_bounded(void)
{
	static const char zeros[1 << 24];
	const char *directory = test_scratch();
	pack(directory, "bomb.gz", zeros, sizeof(zeros), sizeof(zeros), "", 0);
	char path[600];
	snprintf(path, sizeof(path), "%s/bomb.gz", directory);
	const int file = open(path, O_RDONLY | O_CLOEXEC);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_spool spool = {.file = -1, .limit = 3 << 20};
	FAILS(smalti_spool_add(&spool, file, "bomb.gz", NULL, NULL, &error), &error, SMALTI_EUNSUPPORTED,
	      "a bomb", "bomb.gz: more than 3145728 bytes when decompressed",
	      "name files that are not compressed");
	CU_ASSERT(lseek(spool.file, 0, SEEK_END) <= 3 << 20);
	close(spool.file);
	close(file);
}

static const struct test tests[] = {
    {"braces are expanded", braces_are_expanded},
    {"several tars are one data set", several_tars_are_one_data_set},
    {"sources are refused", sources_are_refused},
    {"what a directory has else is noted", what_a_directory_has_else_is_noted},
    {"captions are found", captions_are_found},
    {"streams are kept", streams_are_kept},
    {"what gzip compressed is the same", what_gzip_compressed_is_the_same},
    {"what gzip damaged is refused", what_gzip_damaged_is_refused},
    {"gzip bombs are bounded", gzip_bombs_are_bounded},
};
TEST_MAIN("dataset sources", tests)
