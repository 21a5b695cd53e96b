/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/help.h"
#include "cli/options.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

struct paint {
	bool quiet, has_seed, has_images;
	uint64_t seed;
	int64_t steps, memory, tiles, images, frames, candidates;
	double guidance, change, rate;
	struct smalti_size size, crop;
	const char *output;
	struct smalti_string_list prompts;
	int scheduler;
};

static const char *const tiles[] = {"auto", "all", NULL};
static const char *const schedulers[] = {"dpm++", "euler", "ddim", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Input")},
    {SMALTI_LIST(struct paint, prompts), "prompt", 'p', "TEXT", "what to paint"},
    {SMALTI_STRING(struct paint, output), "output", 'o', "FILE", "where the image goes"},
    {SMALTI_GROUP("Sampling")},
    {SMALTI_INT64(struct paint, steps), "steps", 's', "N", "denoising steps", .minimum = 1, .maximum = 1000,
     .alias = "step-count"},
    {SMALTI_SEED(struct paint, seed), "seed", 0, "N", "seed of the noise",
     SMALTI_GIVEN(struct paint, has_seed)},
    {SMALTI_DOUBLE(struct paint, guidance), "guidance", 'g', "SCALE",
     "how strongly the image follows the text; a long help text that has to be wrapped over several lines "
     "to stay within the width of a terminal",
     .real_minimum = 0, .real_maximum = 1000},
    {SMALTI_SIZE(struct paint, size.width, size.height), "size", 0, "WxH", "size of the image", .minimum = 16,
     .maximum = 1000000000},
    {SMALTI_SIZE(struct paint, crop.width, crop.height), "crop", 0, "WxH", "part of it", .minimum = 16,
     .maximum = 1000000000},
    {SMALTI_DOUBLE(struct paint, change), "change", 0, "X", "share of the steps; default: 0.8",
     .real_minimum = 0, .real_maximum = 1},
    {SMALTI_DOUBLE(struct paint, rate), "rate", 0, "X", "rate", .real_minimum = 0, .real_maximum = 1e30},
    {SMALTI_INT64(struct paint, images), "images", 0, "N", "images", .minimum = 1, .maximum = 9,
     SMALTI_GIVEN(struct paint, has_images)},
    {SMALTI_INT64(struct paint, frames), "frames", 0, "N", "frames", .minimum = 0, .maximum = INT32_MAX},
    {SMALTI_INT64(struct paint, candidates), "candidates", 0, "K", "candidates", .minimum = 1, .maximum = 9},
    {SMALTI_CHOICE(struct paint, scheduler), "scheduler-of-the-noise", 0, "NAME", "noise schedule",
     .choices = schedulers},
    {SMALTI_INT64(struct paint, tiles), "tiles", 0, "N", "tiles", .maximum = 9, .choices = tiles},
    {SMALTI_BYTES(struct paint, memory), "memory", 'm', "BYTES", "limit", .maximum = INT64_MAX},
    {SMALTI_FLAG(struct paint, quiet), "quiet", 'q', NULL, "show no progress"},
};
static const struct smalti_option_table table = {SMALTI_OPTION_TABLE(rows)};

static const struct paint defaults = {
    .steps = 20, .guidance = 4.5, .size = {512, 512}, .output = "-", .images = 4};

enum { MOST = 13 };

struct line {
	const char *words[MOST]; /* after the command's name; NULL-terminated */
};

static int parse(const struct line *line, struct paint *values, enum smalti_invocation *request,
		 int *operands, char *first[static 1], struct smalti_error *error)
{
	static char copies[MOST][128];
	char *argv[MOST + 2] = {"paint"};
	int argc = 1;
	for (; line->words[argc - 1]; argc++) {
		strcpy(copies[argc - 1], line->words[argc - 1]);
		argv[argc] = copies[argc - 1];
	}
	int index;
	*values = defaults;
	int status = smalti_options_parse(&table, argc, argv, values, request, &index, error);
	*operands = argc - index;
	*first = argv[index];
	return status;
}

static void every_kind_is_stored(void)
{
	static const struct line line = {{"-pa", "--size=64x48", "tree", "--seed", "-1", "-qs7", "--prompt=b",
					  "--guid=0.5", "--scheduler-of-the-noise=ddim", "-m", "2K",
					  "--tiles=all"}};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct paint values;
	enum smalti_invocation request;
	int operands;
	char *first;
	SUCCEEDS(parse(&line, &values, &request, &operands, &first, &error), &error, "parse");
	CU_ASSERT_EQUAL(request, SMALTI_RUN);
	CU_ASSERT_TRUE(values.quiet && values.has_seed);
	CU_ASSERT_EQUAL(values.seed, UINT64_MAX);
	CU_ASSERT_EQUAL(values.steps, 7);
	CU_ASSERT_EQUAL(values.memory, 2048);
	CU_ASSERT_EQUAL(values.tiles, -2);
	CU_ASSERT_EQUAL(values.guidance, 0.5);
	CU_ASSERT_TRUE(values.size.width == 64 && values.size.height == 48);
	CU_ASSERT_EQUAL(values.scheduler, 2);
	CU_ASSERT_STRING_EQUAL(values.output, "-");
	CU_ASSERT_EQUAL_FATAL(values.prompts.count, 2);
	CU_ASSERT_STRING_EQUAL(values.prompts.items[0], "a");
	CU_ASSERT_STRING_EQUAL(values.prompts.items[1], "b");
	CU_ASSERT_EQUAL_FATAL(operands, 1);
	CU_ASSERT_STRING_EQUAL(first, "tree");
	smalti_options_free(&table, &values);
	CU_ASSERT_EQUAL(values.prompts.count, 0);
}

static void nothing_given_leaves_the_defaults(void)
{
	static const struct line line = {{"--", "--steps=3"}};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct paint values;
	enum smalti_invocation request;
	int operands;
	char *first;
	SUCCEEDS(parse(&line, &values, &request, &operands, &first, &error), &error, "parse");
	CU_ASSERT_EQUAL(values.steps, 20);
	CU_ASSERT_FALSE(values.has_seed);
	CU_ASSERT_EQUAL_FATAL(operands, 1);
	CU_ASSERT_STRING_EQUAL(first, "--steps=3");
}

static void mistakes_are_named(void)
{
	static const struct {
		struct line line;
		const char *words[3];
	} cases[] = {
	    {{{"--size", "12"}}, {"--size: expected WxH in pixels", "found '12'"}},
	    {{{"--size", "-1"}}, {"--size: expected WxH in pixels", "found '-1'"}},
	    {{{"--size=8x8"}}, {"--size: ", "from 16 to 1000000000", "'8x8'"}},
	    {{{"-s0"}}, {"--steps: expected a whole number from 1 to 1000", "found '0'"}},
	    {{{"--steps="}}, {"--steps", "found ''"}},
	    {{{"--tiles=10"}}, {"--tiles: expected auto or a whole number from 0 to 9, found '10'"}},
	    {{{"--tiles=-1"}}, {"--tiles: expected auto or a", "found '-1'"}},
	    {{{"--steps"}}, {"--steps: expected N after it"}},
	    {{{"-s"}}, {"--steps: expected N after it"}},
	    {{{"--seed=1.5"}}, {"--seed", "'1.5'"}},
	    {{{"-gmany"}}, {"--guidance", "'many'"}},
	    {{{"--memory=12Q"}}, {"--memory", "12G", "'12Q'"}},
	    {{{"--scheduler-of-the-noise=pndm"}}, {"dpm++, euler, ddim", "'pndm'"}},
	    {{{"--quiet=yes"}}, {"--quiet: takes no value"}},
	    {{{"--help=me"}}, {"--help: takes no value"}},
	    {{{"--step-size=3"}}, {"unknown option '--step-size'"}},
	    {{{"--stpes", "3"}}, {"unknown option '--stpes'", "'--steps'"}},
	    {{{"--s", "3"}}, {"ambiguous option '--s'"}},
	    {{{"--step-c=0"}}, {"--steps: "}},
	    {{{"--step_count=3"}}, {"unknown option '--step_count'", "'--step-count'"}},
	    {{{"-1"}}, {"unknown option '-1'"}},
	    {{{"-qz"}}, {"unknown option '-z'"}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct paint values;
		enum smalti_invocation request;
		int operands;
		char *first;
		int status = parse(&cases[i].line, &values, &request, &operands, &first, &error);
		FAILS(status, &error, SMALTI_EINVAL, cases[i].line.words[0], cases[i].words[0],
		      cases[i].words[1], cases[i].words[2]);
		smalti_options_free(&table, &values);
	}
}

/* An option's other name, whole or abbreviated as far as it is that option's alone. */
static void an_alias_is_the_option(void)
{
	static const struct line lines[] = {
	    {{"--step-count=7"}}, {{"--step-count", "7"}}, {{"--step-c=7"}}, {{"--step=7"}}, {{"--st", "7"}}};
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct paint values;
		enum smalti_invocation request;
		int operands;
		char *first;
		SUCCEEDS(parse(&lines[i], &values, &request, &operands, &first, &error), &error,
			 lines[i].words[0]);
		CU_ASSERT_EQUAL(values.steps, 7);
	}
}

static void help_is_asked_for_before_later_mistakes(void)
{
	static const struct {
		struct line line;
		enum smalti_invocation request;
	} cases[] = {
	    {{{"--help", "--steps=x"}}, SMALTI_HELP},
	    {{{"-h"}}, SMALTI_HELP},
	    {{{"--version"}}, SMALTI_SHOW_VERSION},
	    {{{"-V"}}, SMALTI_SHOW_VERSION},
	    {{{"--man"}}, SMALTI_MAN},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct paint values;
		enum smalti_invocation request;
		int operands;
		char *first;
		SUCCEEDS(parse(&cases[i].line, &values, &request, &operands, &first, &error), &error,
			 "request");
		CU_ASSERT_EQUAL(request, cases[i].request);
	}
}

static const struct smalti_example examples[] = {
    {"Paint a tree", "smalti paint --size=64x48 tree"},
    {NULL, NULL},
};

static enum smalti_exit run(void *options, int count, char **operands)
{
	const struct paint *paint = options;
	return count == 1 && strcmp(operands[0], "tree") == 0 && paint->steps == 3 ? SMALTI_EXIT_SOME_FAILED
										   : SMALTI_EXIT_FAILED;
}

static const struct smalti_command command = {
    .name = "smalti paint",
    .summary = "paint from text",
    .operands = "[TEXT]...",
    .description = "First paragraph.\n\n.Second paragraph - with words enough to go past the end of a "
		   "line, which is at column 79.",
    .options = {SMALTI_OPTION_TABLE(rows)},
    .examples = examples,
    .defaults = &defaults,
    .size = sizeof(defaults),
    .run = run,
};

static char *print_to_text(void (*print)(const struct smalti_command *, FILE *))
{
	char *text = NULL;
	size_t length;
	FILE *memory = open_memstream(&text, &length);
	print(&command, memory);
	fclose(memory);
	return text;
}

static void help_is_wrapped_and_complete(void)
{
	char *text = print_to_text(smalti_print_help);
	CHECK(strstr(text, "Usage: smalti paint [OPTION]... [TEXT]...\n\nFirst paragraph.\n\n.Second ") ==
		  text,
	      text);
	CHECK(strstr(text, "\nInput:\n  -p, --prompt=TEXT          what to paint (may be repeated)\n"), text);
	CHECK(strstr(text, "      --size=WxH             size of the image (default 512x512)\n"), text);
	CHECK(strstr(text, "  -s, --steps=N              denoising steps (from 1 to 1000; default 20; also\n"
			   "                             --step-count)\n"),
	      text);
	CHECK(strstr(text,
		     "\n      --scheduler-of-the-noise=NAME\n                             noise schedule "
		     "(one of dpm++, euler, ddim; default\n"),
	      text);
	CHECK(strstr(text, "      --seed=N               seed of the noise\n"), text);
	CHECK(strstr(text, "      --tiles=N              tiles (from 0 to 9, or auto, all; default 0)\n"),
	      text);
	CHECK(strstr(text, "\nExamples:\n  Paint a tree:\n    smalti paint --size=64x48 tree\n"), text);
	CHECK(strstr(text, "  -h, --help                 show this help and exit\n"), text);
	CHECK(strstr(text, "\nExit status:\n  0 success, "), text);
	CHECK(strstr(text, "      --crop=WxH             part of it\n"), text);
	CHECK(strstr(text, "      --change=X             share of the steps; default: 0.8 (from 0 to 1)\n"),
	      text);
	CHECK(strstr(text, "      --rate=X               rate (0 or more; default 0)\n"), text);
	CHECK(strstr(text, "      --images=N             images (from 1 to 9; default 4)\n"), text);
	CHECK(strstr(text, "      --frames=N             frames (0 or more; default 0)\n"), text);
	CHECK(strstr(text, "      --candidates=K         candidates (from 1 to 9)\n"), text);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		int length = (int)strcspn(line, "\n");
		CHECK(length <= 79, line);
		CHECK(length == 0 || line[length - 1] != ' ', line);
	}
	free(text);
}

static void man_page_comes_from_the_same_table(void)
{
	char *text = print_to_text(smalti_print_man);
	CHECK(strncmp(text, ".TH smalti\\-paint 1 ", 20) == 0, text);
	CHECK(strstr(text, "\nsmalti\\-paint \\- paint from text\n"), text);
	CHECK(strstr(text, "First paragraph.\n.PP\n\\&.Second paragraph \\- with"), text);
	CHECK(strstr(text, ".TP\n\\fB\\-s\\fR, \\fB\\-\\-steps\\fR=\\fIN\\fR\ndenoising steps\n"
			   "(from 1 to 1000; default 20; also \\-\\-step\\-count)\n"),
	      text);
	CHECK(strstr(text, "smalti paint \\-\\-size=64x48 tree\n"), text);
	free(text);
}

static void a_command_runs_with_its_options(void)
{
	char *good[] = {"paint", "-ptree", "tree", "-s3", NULL};
	CU_ASSERT_EQUAL(smalti_command_run(&command, 4, good), SMALTI_EXIT_SOME_FAILED);
	char *bad[] = {"paint", "--size", "12", NULL};
	CU_ASSERT_EQUAL(smalti_command_run(&command, 3, bad), SMALTI_EXIT_USAGE);
}

static void near_names_are_suggested(void)
{
	static const struct {
		const char *typed, *name;
	} cases[] = {
	    {"genrate", "generate"},
	    {"generate-all", "generate"},
	    {"topolgy", "topology"},
	    {"x", NULL},
	    {"", NULL},
	    {"paint", NULL},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_suggestion best =
		    smalti_suggest_start(cases[i].typed, (int)strlen(cases[i].typed));
		smalti_suggest(&best, "generate");
		smalti_suggest(&best, "topology");
		bool same = best.name && cases[i].name ? strcmp(best.name, cases[i].name) == 0
						       : best.name == cases[i].name;
		CHECK(same, cases[i].typed);
	}
}

static const struct test tests[] = {
    {"every kind is stored", every_kind_is_stored},
    {"nothing given leaves the defaults", nothing_given_leaves_the_defaults},
    {"mistakes are named", mistakes_are_named},
    {"an alias is the option", an_alias_is_the_option},
    {"help is asked for before later mistakes", help_is_asked_for_before_later_mistakes},
    {"help is wrapped and complete", help_is_wrapped_and_complete},
    {"man page comes from the same table", man_page_comes_from_the_same_table},
    {"a command runs with its options", a_command_runs_with_its_options},
    {"near names are suggested", near_names_are_suggested},
};

TEST_MAIN("options", tests)
