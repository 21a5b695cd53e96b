/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "text/prompts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct smalti_prompts *open_text(const char *content)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_prompts *prompts =
	    smalti_prompts_open(test_write("prompts", content, strlen(content)), &error);
	CHECK(prompts, error.message);
	return prompts;
}

/* One line of JSON must give this error. */
static void refuses(const char *content, size_t length, const char *first, const char *second)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_prompts *prompts = smalti_prompts_open(test_write("prompts", content, length), &error);
	struct smalti_prompt_line line;
	int status = smalti_prompts_next(prompts, &line, &error);
	FAILS(status == SMALTI_PROMPTS_BAD ? -1 : 0, &error, SMALTI_EFORMAT, content, "prompts:1: ", first,
	      second);
	CU_ASSERT_EQUAL(line.line, 1);
	CU_ASSERT_PTR_NULL(line.prompt);
	struct smalti_error none = SMALTI_NO_ERROR;
	CU_ASSERT_EQUAL(smalti_prompts_next(prompts, &line, &none), SMALTI_PROMPTS_END);
	smalti_prompts_close(prompts);
}

static void check_prompt(struct smalti_prompts *prompts, int64_t number, const char *text)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_prompt_line line;
	enum smalti_prompts_status status = smalti_prompts_next(prompts, &line, &error);
	CHECK(status == SMALTI_PROMPTS_LINE, error.message);
	if (status != SMALTI_PROMPTS_LINE)
		return;
	CHECK(line.line == number, text);
	CHECK(strcmp(line.prompt, text) == 0, line.prompt);
	smalti_prompt_line_free(&line);
}

static void check_end(struct smalti_prompts *prompts)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_prompt_line line;
	CU_ASSERT_EQUAL(smalti_prompts_next(prompts, &line, &error), SMALTI_PROMPTS_END);
	CU_ASSERT_EQUAL(error.code, SMALTI_OK);
	smalti_prompts_close(prompts);
}

static void text_lines_are_prompts(void)
{
	struct smalti_prompts *prompts =
	    open_text("\xef\xbb\xbf"
		      "a star\n\n \t\r\n  two spaces \r\n{not JSON here}\nd\xc3\xa9j\xc3\xa0 vu");
	check_prompt(prompts, 1, "a star");
	check_prompt(prompts, 4, "  two spaces ");
	check_prompt(prompts, 5, "{not JSON here}");
	check_prompt(prompts, 6, "d\xc3\xa9j\xc3\xa0 vu");
	check_end(prompts);
}

static void nothing_but_blanks_is_the_end(void)
{
	static const char *const cases[] = {"", "\n", " \n\t\n\r\n\v\f", "\xef\xbb\xbf"};
	for (size_t i = 0; i < COUNT(cases); i++)
		check_end(open_text(cases[i]));
}

static void every_key_is_read(void)
{
	struct smalti_prompts *prompts = open_text(
	    "\n {\"prompt\": \"a \\\"star\\\"\", \"negative_prompt\": \"blur\", \"seed\": 9007199254740993, "
	    "\"width\": 512, \"height\": 1000000000, \"num_inference_steps\": 14, \"guidance_scale\": 0, "
	    "\"eta\": 0.25, "
	    "\"id\": \"d\\u00e9j\\u00e0 1\", \"num_images_per_prompt\": 4, \"scheduler\": \"euler\", "
	    "\"use_resolution_binning\": true, \"image\": \"a.png\", \"mask\": \"b.png\", \"strength\": 0.5, "
	    "\"keep_original\": true}\r\n");
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_prompt_line line;
	CU_ASSERT_EQUAL_FATAL(smalti_prompts_next(prompts, &line, &error), SMALTI_PROMPTS_LINE);
	CU_ASSERT_EQUAL(line.line, 2);
	CU_ASSERT_STRING_EQUAL(line.prompt, "a \"star\"");
	CU_ASSERT_STRING_EQUAL(line.negative, "blur");
	CU_ASSERT_STRING_EQUAL(line.id, "d\xc3\xa9j\xc3\xa0 1");
	CU_ASSERT_STRING_EQUAL(line.scheduler, "euler");
	CU_ASSERT_TRUE(line.has_seed && line.has_guidance && line.has_binning && line.binning);
	CU_ASSERT_EQUAL(line.seed, 9007199254740993u);
	CU_ASSERT_TRUE(line.width == 512 && line.height == 1000000000);
	CU_ASSERT_TRUE(line.steps == 14 && line.images == 4 && line.guidance == 0);
	CU_ASSERT_TRUE(line.has_eta && line.eta == 0.25);
	CU_ASSERT_STRING_EQUAL(line.image, "a.png");
	CU_ASSERT_STRING_EQUAL(line.mask, "b.png");
	CU_ASSERT_TRUE(line.strength == 0.5 && line.has_keep && line.keep);
	smalti_prompt_line_free(&line);
	check_end(prompts);
}

static void what_is_absent_stays_empty(void)
{
	struct smalti_prompts *prompts = open_text(
	    "{\"prompt\":\"\",\"negative_prompt\":null,\"id\":null,\"scheduler\":null,\"seed\":null,"
	    "\"width\":null,\"height\":null,\"num_inference_steps\":null,\"guidance_scale\":null,"
	    "\"num_images_per_prompt\":null,\"use_resolution_binning\":null}");
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_prompt_line line;
	CU_ASSERT_EQUAL_FATAL(smalti_prompts_next(prompts, &line, &error), SMALTI_PROMPTS_LINE);
	CU_ASSERT_STRING_EQUAL(line.prompt, "");
	CU_ASSERT_TRUE(!line.negative && !line.id && !line.scheduler);
	CU_ASSERT_TRUE(!line.has_seed && !line.has_guidance && !line.has_eta && !line.has_binning);
	CU_ASSERT_TRUE(!line.width && !line.height && !line.steps && !line.images);
	smalti_prompt_line_free(&line);
	check_end(prompts);
}

static void seeds_are_exact_wherever_they_stand(void)
{
	static const struct {
		const char *text;
		uint64_t seed;
	} cases[] = {
	    {"{\"prompt\":\"\",\"seed\":18446744073709551615}", UINT64_MAX},
	    {"{\"seed\" : -1 ,\"prompt\":\"\"}", UINT64_MAX},
	    {"{\"seed\":-9223372036854775808,\"prompt\":\"\"}", UINT64_C(1) << 63},
	    {"{\"prompt\":\"\\\\\\\": {\\\"seed\\\":1, \",\"s\\u0065ed\":9223372036854775809}",
	     (UINT64_C(1) << 63) + 1},
	    {"{\"prompt\":\"\",\"seed\":3.0}", 3},
	    {"{\"prompt\":\"\",\"seed\":-1.0}", UINT64_MAX},
	    {"{\"prompt\":\"\",\"seed\":9007199254740991.0}", 9007199254740991u},
	    {"{\"prompt\":\"\",\"seed\":1e3}", 1000},
	    {"{\"id\":\"a:b,c]\",\"\\u0073eed\":\t9007199254740995,\"prompt\":\":\"}", 9007199254740995u},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_prompts *prompts = open_text(cases[i].text);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_prompt_line line;
		CHECK(smalti_prompts_next(prompts, &line, &error) == SMALTI_PROMPTS_LINE, error.message);
		CHECK(line.has_seed && line.seed == cases[i].seed, cases[i].text);
		smalti_prompt_line_free(&line);
		check_end(prompts);
	}
}

static void wrong_lines_say_why(void)
{
	static const struct {
		const char *text, *first, *second;
	} cases[] = {
	    {"{", "not valid JSON", NULL},
	    {"{\"prompt\":\"a\"} x", "not valid JSON", NULL},
	    {"{}", "\"prompt\"", "missing"},
	    {"{\"prompt\":null}", "\"prompt\"", "missing"},
	    {"{\"prompt\":NaN}", "\"prompt\"", "found NaN"},
	    {"{\"prompt\":\"a\",\"nosuch\":null}", "unknown key \"nosuch\"", NULL},
	    {"{\"prompt\":3}", "\"prompt\"", "3"},
	    {"{\"prompt\":[\"a\"]}", "\"prompt\"", "an array"},
	    {"{\"prompt\":\"a\\u0000b\"}", "NUL", NULL},
	    {"{\"prompt\":\"a\",\"prompt\":\"b\"}", "twice", NULL},
	    {"{\"prompt\":\"a\",\"steps\":3}", "unknown key \"steps\"", "num_inference_steps"},
	    {"{\"prompt\":\"a\",\"Seed\":3}", "unknown key \"Seed\"", NULL},
	    {"{\"prompt\":\"a\",\"seed\":1.5}", "seed", "found 1.5"},
	    {"{\"prompt\":\"a\",\"seed\":1e20}", "seed", "found 1e20"},
	    {"{\"prompt\":\"a\",\"seed\":9007199254740992.0}", "seed", "found 9007199254740992.0"},
	    {"{\"prompt\":\"a\",\"seed\":Infinity}", "seed", "found inf"},
	    {"{\"prompt\":\"a\",\"seed\":\"1\"}", "seed", "\"1\""},
	    {"{\"prompt\":\"a\",\"seed\":NaN}", "seed", "NaN"},
	    {"{\"prompt\":\"a\",\"seed\":18446744073709551616}", "seed", "2^64-1"},
	    {"{\"prompt\":\"a\",\"seed\":-9223372036854775809}", "seed", "2^64-1"},
	    {"{\"prompt\":\"a\",\"seed\":10000000000000000000000000000000000000000000001}", "seed", "..."},
	    {"{\"prompt\":\"a\",\"width\":15}", "\"width\"", "16"},
	    {"{\"prompt\":\"a\",\"height\":1000000001}", "\"height\"", "1000000000"},
	    {"{\"prompt\":\"a\",\"width\":512.5}", "\"width\"", "512.5"},
	    {"{\"prompt\":\"a\",\"width\":NaN}", "\"width\"", "NaN"},
	    {"{\"prompt\":\"a\",\"num_inference_steps\":0}", "\"num_inference_steps\"", "1000"},
	    {"{\"prompt\":\"a\",\"use_resolution_binning\":1}", "\"use_resolution_binning\"", "1"},
	    {"{\"prompt\":\"a\",\"guidance_scale\":-1}", "\"guidance_scale\"", "1000"},
	    {"{\"prompt\":\"a\",\"guidance_scale\":Infinity}", "\"guidance_scale\"", "inf"},
	    {"{\"prompt\":\"a\",\"guidance_scale\":NaN}", "\"guidance_scale\"", "NaN"},
	    {"{\"prompt\":\"a\",\"num_images_per_prompt\":0}", "\"num_images_per_prompt\"", "from 1"},
	    {"{\"prompt\":\"a\",\"id\":7}", "\"id\"", "7"},
	    {"{\"prompt\":\"a\",\"id\":\"\"}", "id", "1 to 200"},
	    {"{\"prompt\":\"a\",\"id\":\".hidden\"}", "id", ".hidden"},
	    {"{\"prompt\":\"a\",\"id\":\"..\"}", "id", ".."},
	    {"{\"prompt\":\"a\",\"id\":\"a/b\"}", "id", "a/b"},
	    {"{\"prompt\":\"a\",\"id\":\"a\\nb\"}", "id", "control"},
	    {"{\"prompt\":\"a\",\"id\":\"a\\u007f\"}", "id", "control"},
	    {"{\"prompt\":\"a\",\"id\":\"a\\u0085\"}", "id", "control"},
	    {"caf\xe9", "UTF-8", NULL},
	    {"\xed\xa0\x80", "UTF-8", NULL},
	    {"{\"prompt\":\"\xc0\x80\"}", "UTF-8", NULL},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		refuses(cases[i].text, strlen(cases[i].text), cases[i].first, cases[i].second);
	refuses("a\0b", 3, "NUL byte", NULL);
}

static void ids_end_at_200_bytes(void)
{
	char id[202];
	memset(id, 'x', sizeof(id));
	id[200] = '\0';
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_check_id(id, &error), &error, "200 bytes");
	id[200] = 'x';
	id[201] = '\0';
	FAILS(smalti_check_id(id, &error), &error, SMALTI_EFORMAT, "201 bytes", "201");
}

static void reading_goes_on_after_a_bad_line(void)
{
	struct smalti_prompts *prompts = open_text("{\"prompt\":\"a\"}\nb\n\n[1]\n{\"prompt\":\"c\"}");
	check_prompt(prompts, 1, "a");
	static const struct {
		int64_t line;
		const char *words;
	} bad[] = {{2, "prompts:2: not valid JSON"}, {4, "prompts:4: expected an object, found an array"}};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_prompt_line line;
		CU_ASSERT_EQUAL(smalti_prompts_next(prompts, &line, &error), SMALTI_PROMPTS_BAD);
		CU_ASSERT_EQUAL(line.line, bad[i].line);
		CHECK(strstr(error.message, bad[i].words), error.message);
	}
	check_prompt(prompts, 5, "c");
	check_end(prompts);
}

/* The longest line passes, one byte more does not, and neither stops the reading. */
static void long_lines_are_refused_alone(void)
{
	size_t limit = SMALTI_PROMPT_LINE_LIMIT;
	char *text = malloc(2 * limit + 4);
	memset(text, 'x', 2 * limit + 4);
	text[limit] = '\n';
	text[2 * limit + 2] = '\n';
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_prompts *prompts =
	    smalti_prompts_open(test_write("prompts", text, 2 * limit + 4), &error);
	struct smalti_prompt_line line;
	CU_ASSERT_EQUAL(smalti_prompts_next(prompts, &line, &error), SMALTI_PROMPTS_LINE);
	CU_ASSERT_EQUAL(strlen(line.prompt), limit);
	smalti_prompt_line_free(&line);
	CU_ASSERT_EQUAL(smalti_prompts_next(prompts, &line, &error), SMALTI_PROMPTS_BAD);
	CHECK(strstr(error.message, "prompts:2: the line is longer than 16777216 bytes"), error.message);
	check_prompt(prompts, 3, "x");
	check_end(prompts);
	free(text);
}

static void files_that_cannot_be_read(void)
{
	struct smalti_error absent = SMALTI_NO_ERROR;
	CU_ASSERT_PTR_NULL(smalti_prompts_open("/nonexistent/prompts", &absent));
	CHECK(absent.code == SMALTI_ENOENT && strstr(absent.message, "/nonexistent/prompts"), absent.message);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_prompts *prompts = smalti_prompts_open(test_scratch(), &error);
	struct smalti_prompt_line line;
	CU_ASSERT_EQUAL(smalti_prompts_next(prompts, &line, &error), SMALTI_PROMPTS_FAILED);
	CHECK(error.code == SMALTI_EIO && strstr(error.message, "directory"), error.message);
	smalti_prompts_close(prompts);
}

/* A line that is on its way, or only half there, is waited for; one that is there, or the end, is not. */
/* Which would otherwise be a prompt, or one for each of its lines. */
static void arrays_are_refused(void)
{
	static const struct {
		const char *content;
		bool array;
	} cases[] = {
	    {"[{\"prompt\": \"x\"}]", true},
	    {"\xef\xbb\xbf\n \t[ {\"prompt\": \"x\"},\n{\"prompt\": \"y\"}]", true},
	    {"[\r\n  {\"prompt\": \"x\"}\r\n]\r\n", true},
	    {"[\"x\", \"y\"]", true},
	    {"[]", true},
	    {"[x], a vase", false},
	    {"a [\n[", false},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_prompt_line line;
		struct smalti_prompts *prompts = open_text(cases[i].content);
		const int status = smalti_prompts_next(prompts, &line, &error);
		if (cases[i].array)
			FAILS(status, &error, SMALTI_EFORMAT, cases[i].content,
			      "prompts:", "a JSON array begins here; one object per line was expected");
		CHECK((status == SMALTI_PROMPTS_FAILED) == cases[i].array, cases[i].content);
		smalti_prompt_line_free(&line);
		smalti_prompts_close(prompts);
	}
}

static void waits_for_whole_lines(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("pipe");
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	int both = open(path, O_RDWR | O_CLOEXEC); /* else the next opens would wait for each other */
	FILE *writer = fopen(path, "w");
	struct smalti_prompts *prompts = smalti_prompts_open(path, &error);
	close(both);
	CHECK(smalti_prompts_waits(prompts), "nothing was written");
	fputs("first\nsecond\nthi", writer);
	fflush(writer);
	CHECK(!smalti_prompts_waits(prompts), "two lines");
	check_prompt(prompts, 1, "first");
	CHECK(!smalti_prompts_waits(prompts), "one line");
	check_prompt(prompts, 2, "second");
	CHECK(smalti_prompts_waits(prompts), "half a line");
	fputs("rd", writer);
	fclose(writer);
	CHECK(!smalti_prompts_waits(prompts), "the end");
	check_prompt(prompts, 3, "third");
	check_end(prompts);
}

static const struct test tests[] = {
    {"text lines are prompts", text_lines_are_prompts},
    {"nothing but blanks is the end", nothing_but_blanks_is_the_end},
    {"every key is read", every_key_is_read},
    {"what is absent stays empty", what_is_absent_stays_empty},
    {"seeds are exact wherever they stand", seeds_are_exact_wherever_they_stand},
    {"wrong lines say why", wrong_lines_say_why},
    {"ids end at 200 bytes", ids_end_at_200_bytes},
    {"reading goes on after a bad line", reading_goes_on_after_a_bad_line},
    {"long lines are refused alone", long_lines_are_refused_alone},
    {"files that cannot be read", files_that_cannot_be_read},
    {"arrays are refused", arrays_are_refused},
    {"waits for whole lines", waits_for_whole_lines},
};

TEST_MAIN("prompts", tests)
