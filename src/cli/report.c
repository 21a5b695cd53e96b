/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"
#include "base/file.h"
#include "cli/numbers.h"
#include "cli/report_page.h"
#include "cli/signals.h"
#include "smalti/features.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

struct settings {
	const char *output;
	int64_t every; /* seconds; 0: once */
};

#define TYPE struct settings

static const struct smalti_option rows[] = {
    {SMALTI_STRING(TYPE, output), "output", 'o', "FILE", "file for the page, or - for standard output"},
    {SMALTI_INT64(TYPE, every), "every", 0, "SECONDS",
     "write the page again every so many seconds until a signal comes, and let it load itself again; 0: once",
     .minimum = 0, .maximum = 86400},
};

static const struct settings defaults = {.output = "report.html"};

static const struct smalti_example examples[] = {
    {"Write the report of an extraction", "smalti report features -o report.html"},
    {"Watch a training run", "smalti report run -o run.html --every 10"},
    {NULL, NULL},
};

static int64_t bytes_of_shards(const char *directory)
{
	int64_t bytes = 0;
	struct stat info;
	SCOPED(closedir) DIR *entries = opendir(directory);
	for (const struct dirent *entry; entries && (entry = readdir(entries));)
		if (strncmp(entry->d_name, "shard-", 6) == 0 &&
		    !fstatat(dirfd(entries), entry->d_name, &info, AT_SYMLINK_NOFOLLOW))
			bytes += info.st_size;
	return bytes;
}

/* The page has its worth while nothing is committed yet, or when nothing can be read. */
static int64_t count_rows(const char *directory)
{
	struct smalti_features_info info;
	struct smalti_features *features = smalti_features_open(directory, NULL, NULL);
	if (!features)
		return -1;
	smalti_features_info(features, &info);
	smalti_features_close(features);
	return info.rows;
}

/* 1: it is one. */
static int find_training(const char *directory, struct smalti_training_history *history,
			 struct smalti_error *error)
{
	if (smalti_training_history_read(directory, history, error) < 0)
		return -1;
	return history->head ? 1 : 0;
}

static int read_extraction(const char *directory, struct smalti_report_data *data, struct smalti_error *error)
{
	SCOPED(free) char *identity = smalti_format(error, "%s/extract.json", directory);
	int64_t size = 0;
	SCOPED(close) const int file = identity ? smalti_open_regular(identity, &size, error) : -1;
	if (file < 0) {
		smalti_error_prefix(error, "%s: neither a directory of features nor a run of smalti train",
				    directory);
		return -1;
	}
	if (smalti_runs_read(directory, &data->runs, error) < 0 ||
	    smalti_failures_read(directory, &data->failures, error) < 0)
		return -1;
	data->rows = count_rows(directory);
	data->shards_bytes = bytes_of_shards(directory);
	return 0;
}

static int write_page(const char *path, const struct smalti_report_data *data, struct smalti_error *error)
{
	smalti_signals_catch(); /* writing is soon over, and leaves nothing unfinished behind then */
	struct smalti_writer *writer = smalti_writer_open(path, error);
	if (!writer)
		return -1;
	FILE *page = smalti_writer_stream(writer);
	smalti_report_begin(page);
	if (data->training)
		smalti_training_history_print(page, data->directory, data->every, data->training);
	else
		smalti_report_data(page, data);
	smalti_report_end(page);
	return smalti_writer_commit(writer, error);
}

/* For who reads no page: "run: step 12 of 100, 3.1 steps/s, 28 s left". */
static void print_pace(const char *directory, const struct smalti_training_history *history)
{
	const struct smalti_training_pace pace = smalti_training_history_pace(history);
	char text[160] = "", number[SMALTI_NUMBER];
	smalti_append(text, sizeof(text), ", ", "step %" PRId64, pace.step);
	if (pace.steps > 0)
		smalti_append(text, sizeof(text), " ", "of %" PRId64, pace.steps);
	if (pace.per_second >= 1)
		smalti_append(text, sizeof(text), ", ", "%.3g steps/s", pace.per_second);
	else if (pace.per_second > 0)
		smalti_append(text, sizeof(text), ", ", "%s a step",
			      smalti_number_seconds(1 / pace.per_second, number));
	if (pace.left > 0)
		smalti_append(text, sizeof(text), ", ", "%s left", smalti_number_seconds(pace.left, number));
	else if (!history->lives)
		smalti_append(text, sizeof(text), ", ", "nobody works at it");
	fprintf(stderr, "%s: %s\n", directory, text);
}

static int write_report(const char *path, struct smalti_report_data *data, struct smalti_error *error)
{
	struct smalti_training_history history;
	int status = find_training(data->directory, &history, error);
	if (status > 0)
		data->training = &history;
	else if (status == 0)
		status = read_extraction(data->directory, data, error);
	if (status >= 0)
		status = write_page(path, data, error);
	if (status >= 0 && data->training)
		print_pace(data->directory, &history);
	smalti_runs_free(&data->runs);
	smalti_failures_free(&data->failures);
	smalti_training_history_free(&history);
	return status;
}

/* Until a signal comes, which ends the pause. */
static int write_again(const struct settings *settings, const char *directory,
		       struct smalti_report_data *data, struct smalti_error *error)
{
	const struct timespec pause = {.tv_sec = settings->every};
	int status;
	do {
		*data = (struct smalti_report_data){.directory = directory, .every = settings->every};
		status = write_report(settings->output, data, error);
		if (settings->every && !status)
			nanosleep(&pause, NULL);
	} while (settings->every && !status && !smalti_signals_caught());
	return status;
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	const struct settings *settings = options;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (count != 1)
		return smalti_usage_error(&smalti_report_command,
					  "name one directory of features or of a training run, found %d",
					  count);
	if (settings->every && strcmp(settings->output, "-") == 0)
		return smalti_usage_error(&smalti_report_command, "--every needs a file: give -o FILE");
	SCOPED(free) struct smalti_report_data *data = smalti_calloc(1, sizeof(*data), &error);
	if (data && write_again(settings, operands[0], data, &error) == 0)
		return SMALTI_EXIT_OK;
	fprintf(stderr, "smalti report: %s\n", error.message);
	return SMALTI_EXIT_FAILED;
}

const struct smalti_command smalti_report_command = {
    .name = "smalti report",
    .summary = "write a report of an extraction or a training run as an HTML page",
    .operands = "DIR",
    .description =
	"Writes an HTML page. Of a directory of features, about its extraction by all processes that have "
	"worked on it: items, tokens and pixels per second over time, what each stage and each worker did, "
	"queues, memory, lengths of captions, bins of images, and failures grouped by their reasons. Of a "
	"run of smalti train: loss, norm of the gradient, rate, speed, what steps spend their time on, what "
	"workers and devices did, memory, evaluations, sample images, and how long the steps take that are "
	"left; that is said on the terminal, too.\n\n"
	"The page is self-contained: it includes the program that draws its charts (Chart.js) and loads "
	"nothing. It can also be written while the work is going on.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};
