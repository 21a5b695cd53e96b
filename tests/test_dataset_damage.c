/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists whose entries are broken, cut short or too long, that shrink, or that are none at all. */
#include "datasets.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a list is to give, item by item: the key of a good one, else words of what is wrong with it. */
struct expected {
	enum smalti_dataset_status status;
	const char *key;
	const char *words; /* of the error, or of the first caption's problem, or its text */
};
#define GOOD  SMALTI_DATASET_RECORD
#define WRONG SMALTI_DATASET_BAD

static const struct list {
	const char *file, *content;
	size_t length; /* 0: strlen */
	struct expected expected[11];
} lists[] = {
    {"x.json",
     "[{\"path\": \"a\"}, {\"path\": 3}, 4, {\"path\":\"b\",\"path\":\"c\"}, {\"path\": \"d\"}]",
     0,
     {{GOOD, "a", NULL},
      {WRONG, "000000001", "path: expected a string, found 3"},
      {WRONG, "000000002", "expected an object, found 4"},
      {WRONG, "000000003", "twice"},
      {GOOD, "d", NULL}}},
    {"missing-comma.json",
     "[{\"path\": \"a\"} {\"path\": \"b\"}, {\"path\": \"c\"},]",
     0,
     {{WRONG, "000000000", "not valid JSON"}, {GOOD, "c", NULL}}},
    {"missing-bracket.json",
     "[{\"path\": \"a\", \"n\": [1}, {\"path\": \"b\"}, , {\"path\": \"c\"]}]",
     0,
     {{WRONG, "000000000", "not valid JSON"},
      {GOOD, "b", NULL},
      {WRONG, "000000002", "not valid"},
      {WRONG, "000000003", "not valid"}}},
    {"never-closed.json",
     "[{\"path\": \"a\"],\n {\"path\": \"b\", {\"path\": \"c\", \"n\": [{}, {}]}]",
     0,
     {{WRONG, "000000000", "not valid JSON"}, {WRONG, "000000001", "not valid JSON"}, {GOOD, "c", NULL}}},
    {"missing-quote.json",
     "[{\"path\": \"a,\n \"x\": 1},\n {\"path\": \"b\"}]",
     0,
     {{WRONG, "000000000", "control character"}, {GOOD, "b", NULL}}},
    {"cut.json",
     "\xef\xbb\xbf [{\"path\": \"a\"}, {\"path\": \"b",
     0,
     {{GOOD, "a", NULL}, {WRONG, "000000001", "ends within this item"}}},
    {"cut-between.json",
     "[{\"path\": \"a\"},\n",
     0,
     {{GOOD, "a", NULL}, {WRONG, "000000001", "cut short: no ']'"}}},
    {"two.json",
     "[{\"path\": \"a\"}] [{\"path\": \"b\"}]",
     0,
     {{GOOD, "a", NULL}, {WRONG, "000000001", "behind the list's end"}}},
    {"escapes.json",
     "[{\"path\": \"\\\"]\\\\\", \"prompt\": \"\\u00e9}\"}, {\"path\": \"\\ud800\"}]",
     0,
     {{GOOD, "\"]\\", "\xc3\xa9}"}, {WRONG, "000000001", "syntax error"}}},
    {"utf8.json",
     "[{\"path\": \"a\", \"prompt\": \"\xff\"}, {\"path\": \"b\xff\", \"prompt\": \"b\"}, {\"path\": \"c\"}]",
     0,
     {{GOOD, "a", "prompt: expected UTF-8"},
      {WRONG, "000000001", "path: expected UTF-8"},
      {GOOD, "c", NULL}}},
    {"names.json",
     "[{\"image\": \"b\", \"path\": \"a\"}, {\"image\": \"b\"}, {\"path\": null, \"file_name\": \"c\"}, "
     "{\"filename\": \"d\", \"id\": \"e\"}, {\"id\": \"f\"}, {\"id\": 7}]",
     0,
     {{GOOD, "a", NULL},
      {GOOD, "b", NULL},
      {GOOD, "c", NULL},
      {GOOD, "d", NULL},
      {GOOD, "f", NULL},
      {GOOD, "7", NULL}}},
    {"no-names.json",
     "[{\"prompt\": \"x\"}, {\"path\": \"\", \"prompt\": 3}, {\"id\": 1.5}, {\"id\": [1]}]",
     0,
     {{GOOD, "000000000", "x"},
      {GOOD, "000000001", "prompt: expected a string, found 3"},
      {WRONG, "000000002", "id: expected"},
      {WRONG, "000000003", "id: expected a string, found an array"}}},
    {"repeated.json",
     "[{\"path\": \"a\"}, {\"path\": \"b\"}, {\"path\": \"a\"}, {\"id\": \"b\"}, {\"path\": \"c/../a\"}]",
     0,
     {{GOOD, "a", NULL},
      {GOOD, "b", NULL},
      {WRONG, "a", "the same key"},
      {WRONG, "b", "the same key"},
      {GOOD, "c/../a", NULL}}},
    {"x.jsonl",
     "\xef\xbb\xbf{\"path\": \"a\"}\r\n\n{\"path\n \t\n{\"path\": \"b\", \"prompt\": \"z\"}",
     0,
     {{GOOD, "a", NULL}, {WRONG, "000000001", "line 3: not valid JSON"}, {GOOD, "b", "z"}}},
    {"nul.jsonl",
     "{\"path\": \"a\0\"}\n{\"path\": \"b\"}\n\0\n",
     31,
     {{WRONG, "000000000", "control character"}, {GOOD, "b", NULL}, {WRONG, "000000002", "line 3: "}}},
    {"nul-elsewhere.jsonl",
     "{\"path\": \"a\", \"exif\": \"x\\u0000\", \"prompt\": \"t\"}\n{\"path\": \"b\", \"prompt\": "
     "\"x\\u0000\"}\n"
     "{\"path\": \"c\\u0000\"}\n{\"path\": \"d\", \"x\": {\"\\u0000\": [\"\\u0000\", \"\xff\"]}}",
     0,
     {{GOOD, "a", "t"},
      {GOOD, "b", "prompt: expected a string, found a string with a NUL"},
      {WRONG, "000000002", "path: expected a string, found a string with a NUL"},
      {GOOD, "d", NULL}}},
    {"nul-elsewhere.csv", "path,prompt,longer,x\na,t,,y\0\n", 29, {{GOOD, "a", "t"}}},
    {"big-ids.json",
     "[{\"id\": 1234567890123456789}, {\"id\": 9007199254740993}, {\"id\": -9223372036854775809}, {\"id\": "
     "18446744073709551615}, {\"id\": 123456789012345678901234567890}, {\"id\": 12.0}, {\"id\": 1e3}, "
     "{\"id\": "
     "1e20}, {\"id\": 9007199254740992.5}, {\"id\": -7}]",
     0,
     {{GOOD, "1234567890123456789", NULL},
      {GOOD, "9007199254740993", NULL},
      {GOOD, "-9223372036854775809", NULL},
      {GOOD, "18446744073709551615", NULL},
      {GOOD, "123456789012345678901234567890", NULL},
      {GOOD, "12", NULL},
      {GOOD, "1000", NULL},
      {WRONG, "000000007", "id: expected a string or an integer, found 1e20"},
      {WRONG, "000000008", "found 9007199254740992.5"},
      {GOOD, "-7", NULL}}},
    {"x.csv",
     "path,prompt,longer\na,x,\nb,y\n\nc,\"1\n\"\"2\"\"\",\"q\"r\nd,z,,\ne,\"w\",\xff\nf,\"v,\n",
     0,
     {{GOOD, "a", "x"},
      {WRONG, "000000001", "line 3: expected 3 fields"},
      {WRONG, "000000002", "line 5: text behind a closing quote"},
      {WRONG, "000000003", "line 7: expected 3 fields"},
      {GOOD, "e", "w"},
      {WRONG, "000000005", "line 9: a quote is not closed"}}},
    {"names.csv",
     "filename,image,prompt,longer,id\r\na,b,x,,\r\n\xff,,\"1\n2\",,f",
     0,
     {{GOOD, "b", "x"}, {GOOD, "f", "1\n2"}}},
    {"bytes.csv",
     "path,prompt,longer\na,\"\xff\",\nb\xff"
     "c,y,\nd\0,z,\ne,\0,\n",
     44,
     {{GOOD, "a", "\xff"},
      {WRONG, "b\\xffc", "not UTF-8"},
      {WRONG, "000000002", "a NUL byte"},
      {WRONG, "000000003", "a NUL byte"}}},
    {"tabs.txt", "prompt\tpath\tlonger\na, b\tp\t\n", 0, {{GOOD, "p", "a, b"}}},
};

static void check_expected(const struct expected *expected, enum smalti_dataset_status status,
			   const struct smalti_dataset_record *record, const struct smalti_error *error,
			   const char *what)
{
	const struct smalti_caption_text *caption = &record->captions[0];
	const char *words = status == SMALTI_DATASET_BAD ? error->message
			    : caption->problem           ? caption->problem
							 : caption->text;
	CHECK(status == expected->status, what);
	CHECK(!caption->text || !caption->problem, what);
	CHECK(record->key && strcmp(record->key, expected->key) == 0, record->key);
	CHECK(expected->words ? words && strstr(words, expected->words) : !words,
	      words ? words : expected->words);
	CHECK((status == SMALTI_DATASET_BAD) == (error->code != SMALTI_OK), what);
}

static void check_list(struct smalti_dataset *dataset, const struct list *list)
{
	int count = 0;
	while (count < COUNT(list->expected) && list->expected[count].key)
		count++;
	CHECK(smalti_dataset_info(dataset)->count == count, list->file);
	for (int i = 0; i < count; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_dataset_record record;
		const enum smalti_dataset_status status = smalti_dataset_next(dataset, &record, &error);
		CHECK(record.index == i, list->file);
		check_expected(&list->expected[i], status, &record, &error, list->file);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_dataset_record record;
	CHECK(smalti_dataset_next(dataset, &record, &error) == SMALTI_DATASET_END, list->file);
	for (int i = count; i-- > 0;) { /* and from anywhere */
		struct smalti_error none = SMALTI_NO_ERROR, why = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_dataset_seek(dataset, i, &none), &none, list->file);
		const enum smalti_dataset_status status = smalti_dataset_next(dataset, &record, &why);
		check_expected(&list->expected[i], status, &record, &why, list->file);
	}
}

static void broken_entries_spoil_no_others(void)
{
	const char *directory = test_scratch();
	for (size_t i = 0; i < COUNT(lists); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const struct list *list = &lists[i];
		dataset_write_file(directory, list->file, list->content,
				   list->length ? list->length : strlen(list->content));
		struct smalti_dataset *dataset = dataset_open(directory, list->file, false, &error);
		CHECK(dataset, error.message);
		if (dataset)
			check_list(dataset, list);
		smalti_dataset_close(dataset);
	}
}

static void data_sets_without_items_are_refused(void)
{
	static const char *const cases[][2] = {{"a.json", " [ \n] "}, {"b.jsonl", ""},
					       {"c.jsonl", "\n \n"},  {"d.csv", "path,prompt,longer\n"},
					       {"e.tar", ""},         {"folder/.hidden", "x"}};
	const char *directory = test_scratch();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		dataset_write_file(directory, cases[i][0], cases[i][1], strlen(cases[i][1]));
		const char *file = strchr(cases[i][0], '/') ? "folder" : cases[i][0];
		FAILS(dataset_open(directory, file, true, &error) ? 0 : -1, &error, SMALTI_EFORMAT, file,
		      "no item in it", file);
	}
}

static void what_is_no_list_is_refused(void)
{
	static const struct refused {
		const char *file, *content;
		enum smalti_code code;
		const char *words[2];
	} cases[] = {
	    {"a.json", "", SMALTI_EFORMAT, {"nothing is in it", "expected a PixArt data_info.json"}},
	    {"b.json", "hello", SMALTI_EFORMAT, {"none of them", "expected a PixArt data_info.json"}},
	    {"c.json", "{\n \"path\": 3}", SMALTI_EFORMAT, {"none of its 2 items", "the first: line 1: "}},
	    {"d.csv", "", SMALTI_EFORMAT, {"first line, found nothing", "d.csv"}},
	    {"e.csv", "prompt,longer\nx,y\n", SMALTI_EFORMAT, {"no column of images", "path, image"}},
	    {"f.csv",
	     "path,prompt\n",
	     SMALTI_EFORMAT,
	     {"expected longer in its first line, found path, prompt; name one with --caption-key", "f.csv"}},
	    {"g.csv", "path,\"prompt\n", SMALTI_EFORMAT, {"a quote is not closed", "g.csv"}},
	    {"h.tar.gz", "\x1f\x8b\x08", SMALTI_EFORMAT, {"h.tar.gz", "cut short at byte 3"}},
	    {"h.tar.bz2", "BZh9", SMALTI_EUNSUPPORTED, {"compressed by bzip2", "bunzip2"}},
	    {"i.parquet", "PAR1", SMALTI_EUNSUPPORTED, {"Parquet", "python/parquet_to_jsonl.py"}},
	    {"j.csv", "\xff\xfep", SMALTI_EUNSUPPORTED, {"UTF-16", "iconv"}},
	    {"k.jpg", "\xff\xd8\xff\xe0", SMALTI_EUNSUPPORTED, {"JPEG image", "name the directory"}},
	    {"l.tar", "hello", SMALTI_EFORMAT, {"none of its 1 items", "cut short"}},
	    {"m.bin", "\1\2,\0\3", SMALTI_EFORMAT, {"expected a PixArt", "none of them"}},
	};
	const char *directory = test_scratch();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const size_t length = cases[i].file[0] == 'm' ? 5 : strlen(cases[i].content);
		dataset_write_file(directory, cases[i].file, cases[i].content, length);
		struct smalti_dataset *dataset = dataset_open(directory, cases[i].file, true, &error);
		FAILS(dataset ? 0 : -1, &error, cases[i].code, cases[i].file, cases[i].words[0],
		      cases[i].words[1]);
		smalti_dataset_close(dataset);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	CU_ASSERT_PTR_NULL(dataset_open(directory, "absent", true, &error));
	CU_ASSERT_EQUAL(error.code, SMALTI_ENOENT);
}

/* An entry longer than is kept, and a long caption. */
static void long_entries_are_bounded(void)
{
	enum { LONG = 1 << 20, TOO_LONG = (64 << 20) + 5 };
	static const struct {
		const char *file, *begin, *middle, *end;
	} cases[] = {
	    {"a.json", "[{\"path\":\"a\",\"prompt\":\"", "\"},{\"path\":\"b\",\"prompt\":\"",
	     "\"},{\"path\":\"c\"}]"},
	    {"b.jsonl", "{\"path\":\"a\",\"prompt\":\"", "\"}\n{\"path\":\"b\",\"prompt\":\"",
	     "\"}\n{\"path\":\"c\"}"},
	    {"c.csv", "path,prompt,longer\na,", ",\nb,", ",\nc,,\n"},
	};
	char *text = malloc(TOO_LONG);
	memset(text, 'x', TOO_LONG);
	const char *directory = test_scratch();
	for (size_t i = 0; i < COUNT(cases); i++) {
		char path[512];
		struct smalti_error error = SMALTI_NO_ERROR, why = SMALTI_NO_ERROR;
		struct smalti_dataset_record record;
		snprintf(path, sizeof(path), "%s/%s", directory, cases[i].file);
		FILE *file = fopen(path, "wb");
		fprintf(file, "%s%.*s%s%.*s%s", cases[i].begin, LONG, text, cases[i].middle, TOO_LONG, text,
			cases[i].end);
		fclose(file);
		struct smalti_dataset *dataset = dataset_open(directory, cases[i].file, false, &error);
		CHECK(dataset && smalti_dataset_info(dataset)->count == 3, error.message);
		CHECK(smalti_dataset_next(dataset, &record, &error) == SMALTI_DATASET_RECORD, error.message);
		CHECK(record.captions[0].length == LONG, cases[i].file);
		CHECK(smalti_dataset_next(dataset, &record, &why) == SMALTI_DATASET_BAD, cases[i].file);
		CHECK(strstr(why.message, "longer than 67108864 bytes"), why.message);
		CHECK(smalti_dataset_next(dataset, &record, &error) == SMALTI_DATASET_RECORD, error.message);
		CHECK(strcmp(record.key, "c") == 0, record.key);
		smalti_dataset_close(dataset);
		unlink(path);
	}
	free(text);
}

/* A list that is cut while it is read: no item that is not there. */
static void a_list_that_shrinks_fails(void)
{
	const char *directory = test_scratch();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_dataset_record record;
	dataset_write_file(directory, "x.jsonl", "{\"id\":1}\n{\"id\":2}\n", 18);
	struct smalti_dataset *dataset = dataset_open(directory, "x.jsonl", false, &error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dataset);
	dataset_write_file(directory, "x.jsonl", "", 0);
	CU_ASSERT_EQUAL(smalti_dataset_next(dataset, &record, &error), SMALTI_DATASET_FAILED);
	CHECK(strstr(error.message, "had 2 items"), error.message);
	smalti_dataset_close(dataset);
}

static const struct test tests[] = {
    {"broken entries spoil no others", broken_entries_spoil_no_others},
    {"data sets without items are refused", data_sets_without_items_are_refused},
    {"what is no list is refused", what_is_no_list_is_refused},
    {"long entries are bounded", long_entries_are_bounded},
    {"a list that shrinks fails", a_list_that_shrinks_fails},
};

TEST_MAIN("damaged lists", tests)
