/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "harness.h"
#include "sanitized.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Models in which one file was changed by an attacker, each painted from by a process of its own: it paints,
 * or says in one line why not, in little memory and time. SMALTI_TEST_FULL=1: not a sample, but all. */

enum { SAMPLE = 16, ALL = 192, HEADER = 8 };

static const double SECONDS = SANITIZED ? 120 : 12, MEGABYTES = SANITIZED ? 8000 : 800, HANGS = 600;

enum kind { JSON, TENSORS, BINARY };

static const struct target {
	const char *directory, *name;
	enum kind kind;
} targets[] = {
    {".", "model_index.json", JSON},
    {"transformer", "config.json", JSON},
    {"transformer", "diffusion_pytorch_model.safetensors", TENSORS},
    {"text_encoder", "config.json", JSON},
    {"text_encoder", "model.safetensors", TENSORS},
    {"vae", "config.json", JSON},
    {"vae", "diffusion_pytorch_model.safetensors", TENSORS},
    {"scheduler", "scheduler_config.json", JSON},
    {"tokenizer", "spiece.model", BINARY},
    {"tokenizer", "tokenizer_config.json", JSON},
    {"tokenizer", "tokenizer.json", JSON},
};

struct bytes {
	char *at;
	size_t length;
};

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*state >> 33) % below;
}

/* Puts `text` where bytes [from, to) are. */
static void replace(struct bytes *bytes, size_t from, size_t to, const char *text, size_t length)
{
	char *changed = malloc(bytes->length + length + 1);
	memcpy(changed, bytes->at, from);
	memcpy(changed + from, text, length);
	memcpy(changed + from + length, bytes->at + to, bytes->length - to);
	bytes->length += length - (to - from);
	free(bytes->at);
	bytes->at = changed;
}

/* Where the next number begins, at or behind a place; the end when there is none. */
static size_t next_number(const struct bytes *bytes, size_t at, size_t end)
{
	while (at < end && (bytes->at[at] < '0' || bytes->at[at] > '9'))
		at++;
	return at;
}

static void change_number(struct bytes *bytes, size_t from, size_t end, uint64_t *state)
{
	static const char *const numbers[] = {"0",
					      "-1",
					      "1",
					      "3",
					      "0.5",
					      "65536",
					      "2147483648",
					      "9223372036854775807",
					      "18446744073709551616",
					      "1e308",
					      "1e999",
					      "NaN",
					      "null",
					      "\"1\"",
					      "[]",
					      "{}",
					      "true",
					      "1000000"};
	const char *number = numbers[draw(state, COUNT(numbers))];
	const size_t at = next_number(bytes, from + draw(state, end - from), end);
	replace(bytes, at, at + strspn(bytes->at + at, at < end ? "0123456789.e-" : ""), number,
		strlen(number));
}

/* A piece of the text once more, elsewhere. */
static void repeat_piece(struct bytes *bytes, size_t from, size_t end, uint64_t *state)
{
	char piece[64];
	const size_t length = end - from < sizeof(piece) ? end - from : sizeof(piece);
	memcpy(piece, bytes->at + from + draw(state, end - from - length + 1), length);
	const size_t to = from + draw(state, end - from);
	replace(bytes, to, to, piece, 1 + draw(state, length));
}

static void nest(struct bytes *bytes, size_t from, size_t end, uint64_t *state)
{
	enum { DEPTH = 100000 };
	char *brackets = malloc(DEPTH);
	memset(brackets, draw(state, 2) ? '[' : '{', DEPTH);
	const size_t at = from + draw(state, end - from);
	replace(bytes, at, at, brackets, DEPTH);
	free(brackets);
}

static void flip(struct bytes *bytes, size_t from, size_t end, uint64_t *state)
{
	for (uint64_t i = 0, count = 1 + draw(state, 8); i < count; i++)
		bytes->at[from + draw(state, end - from)] ^= (char)(1 << draw(state, 8));
}

static void drop_piece(struct bytes *bytes, size_t from, size_t end, uint64_t *state)
{
	const size_t at = from + draw(state, end - from);
	replace(bytes, at, at + 1 + draw(state, end - at), "", 0);
}

typedef void change_bytes(struct bytes *bytes, size_t from, size_t end, uint64_t *state);
static change_bytes *const changes[] = {change_number, change_number, change_number, repeat_piece,
					nest,          flip,          drop_piece};

static uint64_t header_of(const struct bytes *bytes)
{
	uint64_t length = 0;
	for (int i = 0; i < HEADER; i++)
		length |= (uint64_t)(unsigned char)bytes->at[i] << (8 * i);
	return length;
}

/* The length in front of the header mostly follows what became of it. */
static void change_tensors(struct bytes *bytes, uint64_t *state)
{
	const uint64_t header = header_of(bytes);
	const size_t before = bytes->length;
	changes[draw(state, COUNT(changes))](bytes, HEADER, HEADER + header, state);
	uint64_t length = header + bytes->length - before;
	if (draw(state, 4) == 0)
		length = (uint64_t[]){0, 1, UINT64_MAX, UINT64_C(1) << 62, bytes->length}[draw(state, 5)];
	for (int i = 0; i < HEADER; i++)
		bytes->at[i] = (char)(length >> (8 * i));
}

static void change(const struct target *target, struct bytes *bytes, uint64_t *state)
{
	if (target->kind == TENSORS)
		change_tensors(bytes, state);
	else if (target->kind == JSON)
		changes[draw(state, COUNT(changes))](bytes, 0, bytes->length, state);
	else if (draw(state, 4))
		flip(bytes, 0, bytes->length, state);
	else
		drop_piece(bytes, 0, bytes->length, state);
}

static char *source_of(const struct target *target)
{
	if (strcmp(target->name, "tokenizer.json") == 0)
		return smalti_format(NULL, "%s", test_data("tokenizer/tokenizer.json"));
	return smalti_format(NULL, "%s/%s/%s", test_model("tesserae"), target->directory, target->name);
}

static void write_changed(const struct target *target, const char *path, const char *source, uint64_t *state)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct bytes bytes;
	bytes.at = smalti_file_read(source, 1 << 24, &bytes.length, &error);
	SUCCEEDS(bytes.at ? 0 : -1, &error, source);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes.at);
	change(target, &bytes, state);
	FILE *file = fopen(path, "wb");
	fwrite(bytes.at, 1, bytes.length, file);
	fclose(file);
	free(bytes.at);
}

/* The embedded model, but for one file; spiece.model is there unless its rival is to be read. */
static void make_model(const char *directory, int chosen, uint64_t *state)
{
	const bool json = chosen < COUNT(targets) && strcmp(targets[chosen].name, "tokenizer.json") == 0;
	for (int i = 0; i < COUNT(targets); i++) {
		char *path = smalti_format(NULL, "%s/%s", directory, targets[i].directory),
		     *source = source_of(&targets[i]);
		mkdir(path, 0700);
		free(path);
		path = smalti_format(NULL, "%s/%s/%s", directory, targets[i].directory, targets[i].name);
		if (i == chosen)
			write_changed(&targets[i], path, source, state);
		else if (!json || strcmp(targets[i].name, "spiece.model") != 0)
			CU_ASSERT_EQUAL(symlink(source, path), 0);
		free(source);
		free(path);
	}
}

struct outcome {
	int status;
	double seconds, megabytes; /* of its processors, and of memory */
	char words[2048];
};

static void paint(const char *directory, const char *words)
{
	char *image = smalti_format(NULL, "%s/out.png", directory);
	const int to = open(words, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(to, STDERR_FILENO);
	dup2(to, STDOUT_FILENO);
	const char *command = getenv("SMALTI");
	execl(command ? command : "smalti", "smalti", "generate", "-q", "-p", "a red star", "--steps", "1",
	      "--size", "16x16", "-m", directory, "-o", image, (char *)NULL);
	_exit(127);
}

static double seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec * 1e-6;
}

static void run(const char *directory, struct outcome *outcome)
{
	struct rusage usage = {0};
	char *words = smalti_format(NULL, "%s/words", directory);
	const double began = smalti_now();
	const pid_t child = fork();
	if (child == 0)
		paint(directory, words);
	while (wait4(child, &outcome->status, WNOHANG, &usage) == 0) {
		if (smalti_now() - began > HANGS)
			kill(child, SIGKILL);
		usleep(5000);
	}
	outcome->seconds = seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
	outcome->megabytes = (double)usage.ru_maxrss / 1024;
	FILE *file = fopen(words, "rb");
	outcome->words[fread(outcome->words, 1, sizeof(outcome->words) - 1, file)] = '\0';
	fclose(file);
	free(words);
}

/* Nothing, or one line of the command's. */
static bool one_line(const struct outcome *outcome)
{
	const char *end = strchr(outcome->words, '\n');
	if (WEXITSTATUS(outcome->status) == 0)
		return outcome->words[0] == '\0';
	return strncmp(outcome->words, "smalti generate: ", 17) == 0 && end && end[1] == '\0';
}

static void attack(int seed)
{
	uint64_t state = (uint64_t)seed * 7919 + 1;
	const int chosen = seed % COUNT(targets);
	const char *directory = test_scratch();
	struct outcome outcome = {0};
	char what[3000];
	make_model(directory, chosen, &state);
	run(directory, &outcome);
	snprintf(what, sizeof(what), "%d, %s/%s: status %#x, %.1f s, %.0f MB: %s", seed,
		 targets[chosen].directory, targets[chosen].name, (unsigned)outcome.status, outcome.seconds,
		 outcome.megabytes, outcome.words);
	if (getenv("SMALTI_TEST_FULL"))
		puts(what);
	CHECK(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) <= 1, what);
	CHECK(one_line(&outcome), what);
	CHECK(outcome.seconds < SECONDS && outcome.megabytes < MEGABYTES, what);
}

static void hostile_models(void)
{
	const int count = getenv("SMALTI_TEST_FULL") ? ALL : SAMPLE;
	CU_ASSERT_PTR_NOT_NULL_FATAL(getenv("SMALTI"));
	for (int seed = 0; seed < count; seed++)
		attack(seed);
}

/* What is refused above is refused for its change. */
static void an_unchanged_model_paints(void)
{
	uint64_t state = 0;
	const char *directory = test_scratch();
	struct outcome outcome = {0};
	make_model(directory, COUNT(targets), &state);
	run(directory, &outcome);
	CHECK(outcome.status == 0 && one_line(&outcome), outcome.words);
}

static const struct test tests[] = {
    {"an unchanged model paints", an_unchanged_model_paints},
    {"hostile models", hostile_models},
};

TEST_MAIN("hostile_models", tests)
