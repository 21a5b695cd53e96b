/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"
#include "base/file.h"
#include "cli/signals.h"
#include "smalti/features.h"

#include <fcntl.h>
#include <sys/stat.h>

struct settings {
	const char *output;
};

#define TYPE struct settings

static const struct smalti_option rows[] = {
    {SMALTI_STRING(TYPE, output), "output", 'o', "FILE", "file for the page, or - for standard output"},
};

static const struct settings defaults = {.output = "report.html"};

static const struct smalti_example examples[] = {
    {"Write the report of an extraction", "smalti report features -o report.html"},
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

static int read_data(const char *directory, struct smalti_report_data *data, struct smalti_error *error)
{
	SCOPED(free) char *identity = smalti_format(error, "%s/extract.json", directory);
	int64_t size = 0;
	SCOPED(close) const int file = identity ? smalti_open_regular(identity, &size, error) : -1;
	if (file < 0) {
		smalti_error_prefix(error, "%s: not a directory of features", directory);
		return -1;
	}
	*data = (struct smalti_report_data){.directory = directory};
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
	smalti_report_page(page, data);
	return smalti_writer_commit(writer, error);
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	const struct settings *settings = options;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (count != 1)
		return smalti_usage_error(&smalti_report_command, "name one directory of features, found %d",
					  count);
	SCOPED(free) struct smalti_report_data *data = smalti_calloc(1, sizeof(*data), &error);
	int status = data ? read_data(operands[0], data, &error) : -1;
	if (!status)
		status = write_page(settings->output, data, &error);
	if (data) {
		smalti_runs_free(&data->runs);
		smalti_failures_free(&data->failures);
	}
	if (!status)
		return SMALTI_EXIT_OK;
	fprintf(stderr, "smalti report: %s\n", error.message);
	return SMALTI_EXIT_FAILED;
}

const struct smalti_command smalti_report_command = {
    .name = "smalti report",
    .summary = "write a report of an extraction as an HTML page",
    .operands = "DIR",
    .description =
	"Writes an HTML page about the extraction of a directory of features, by all processes that have "
	"worked on it: items, tokens and pixels per second over time, what each stage and each worker did, "
	"queues, memory, lengths of captions, bins of images, and failures grouped by their reasons. The "
	"page "
	"is self-contained: it includes the program that draws its charts (Chart.js) and loads nothing. It "
	"can also be written while an extraction is running.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};
