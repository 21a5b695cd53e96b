/* SPDX-License-Identifier: Apache-2.0 */
#include "smalti/verify.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/numbers.h"
#include "cli/progress.h"

#define TYPE struct verify_options

struct verify_options {
	bool repair, json, quiet;
};

static const struct verify_options defaults = {.repair = false};

static const struct smalti_option rows[] = {
    {SMALTI_FLAG(TYPE, repair), "repair", 'r', NULL,
     "repair what can be repaired; the next smalti extract computes the rest again"},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL, "print one JSON object"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print problems only"},
};

static const struct smalti_example examples[] = {
    {"Check all checksums", "smalti verify features"},
    {"List damaged rows", "smalti verify --json features | jq '.problems[] | select(.row)'"},
    {"Remove broken shards and compute them again",
     "smalti verify --repair features && smalti extract data_info.json -o features"},
    {NULL, NULL},
};

struct verification {
	const struct verify_options *options;
	struct smalti_progress progress;
	cJSON *problems; /* an array; NULL: they are printed */
	const char *directory;
	bool locked; /* the message on the directory's lock was printed */
};

static void list(cJSON *problems, const struct smalti_problem *problem)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "kind", problem->kind);
	(void)smalti_json_add_text(object, "file", problem->file);
	if (problem->row >= 0)
		cJSON_AddNumberToObject(object, "row", (double)problem->row);
	if (problem->key)
		(void)smalti_json_add_text(object, "key", problem->key);
	(void)smalti_json_add_text(object, "text", problem->text);
	cJSON_AddItemToArray(problems, object);
}

static void on_problem(void *user, const struct smalti_problem *problem)
{
	struct verification *verification = user;
	if (verification->problems)
		list(verification->problems, problem);
	else
		printf("%s\n", problem->text);
}

static void on_progress(void *user, int64_t done, int64_t bytes)
{
	enum { MEBIBYTE = 1 << 20 };
	struct verification *verification = user;
	smalti_progress_update(&verification->progress, done / MEBIBYTE, bytes / MEBIBYTE);
}

static bool on_waiting(void *user, const char *holder, double seconds)
{
	struct verification *verification = user;
	smalti_progress_locked(&verification->progress, "smalti verify", verification->directory, holder,
			       seconds, &verification->locked);
	return true;
}

static void say_repair(const struct smalti_verify_result *result)
{
	printf("; repaired");
	if (result->left)
		printf(", but for %" PRId64, result->left);
	if (result->dropped)
		printf("; %" PRId64 " item%s to be made again", result->dropped,
		       result->dropped == 1 ? " has" : "s have");
}

static void sum_up(const char *directory, const struct smalti_verify_result *result, bool repaired)
{
	char size[SMALTI_NUMBER];
	printf("%s: %" PRId64 " shard%s, %" PRId64 " item%s (%" PRId64 " failed), %s: ", directory,
	       result->shards, smalti_plural(result->shards), result->rows, smalti_plural(result->rows),
	       result->failures, smalti_number_bytes((double)result->bytes, size));
	if (result->problems)
		printf("%" PRId64 " problem%s", result->problems, smalti_plural(result->problems));
	else
		printf("all is well");
	if (result->problems && repaired)
		say_repair(result);
	printf("\n");
}

static void print_json(const char *directory, const struct smalti_verify_result *result, cJSON *problems)
{
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "folder", directory);
	cJSON_AddBoolToObject(object, "well", result->problems == 0);
	const struct {
		const char *key;
		int64_t value;
	} numbers[] = {
	    {"shards", result->shards}, {"items", result->rows},      {"failures", result->failures},
	    {"bytes", result->bytes},   {"dropped", result->dropped}, {"left", result->left},
	};
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		cJSON_AddNumberToObject(object, numbers[i].key, (double)numbers[i].value);
	cJSON_AddItemToObject(object, "problems", problems);
	SCOPED(free) char *text = cJSON_Print(object);
	printf("%s\n", text ? text : "{}");
}

static enum smalti_exit run(void *values, int count, char **operands)
{
	if (count != 1)
		return smalti_usage_error(&smalti_verify_command, "expected one directory, found %d", count);
	const struct verify_options *options = values;
	const char *directory = operands[0];
	struct verification verification = {.options = options, .directory = directory};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_verify_result result;
	if (options->json)
		verification.problems = cJSON_CreateArray();
	const struct smalti_verify_options wanted = {options->repair, &verification, on_problem, on_progress,
						     on_waiting};
	smalti_progress_begin(&verification.progress, stderr, "MiB", options->quiet || options->json);
	const int status = smalti_verify(directory, &wanted, &result, &error);
	smalti_progress_end(&verification.progress);
	if (status < 0) {
		fprintf(stderr, "smalti verify: %s\n", error.message);
		cJSON_Delete(verification.problems);
		return SMALTI_EXIT_FAILED;
	}
	if (options->json)
		print_json(directory, &result, verification.problems);
	else if (!options->quiet)
		sum_up(directory, &result, options->repair);
	const bool fine = options->repair ? result.left == 0 : result.problems == 0;
	const enum smalti_exit written = smalti_finish_stdout();
	return fine ? written : SMALTI_EXIT_FAILED;
}

const struct smalti_command smalti_verify_command = {
    .name = "smalti verify",
    .summary = "check and repair a directory of features",
    .operands = "DIR",
    .description =
	"Reads every byte of the features in DIR and of the files that describe them (except runs/, the "
	"measurements of smalti extract) and prints a line for every problem: files and rows with a wrong "
	"checksum, duplicate or missing items, shards made with other options, stray files, and lists that "
	"do "
	"not match the shards. The exit status is 0 if there is no problem, else 1.\n\n--repair renames the "
	"files of broken shards to NAME.broken, so that the next smalti extract computes their items again. "
	"It removes stray files, and writes failed.jsonl, manifest.json and features.h5 again if all their "
	"parts are there. The exit status is 0 if no problem is left that cannot be repaired.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};
