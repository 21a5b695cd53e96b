/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"
#include "base/file.h"
#include "report/page.h"
#include "smalti/features.h"

#include <fcntl.h>
#include <sys/stat.h>

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

/* Returns -1 while nothing is committed or can be read, for the page is of use then, too. */
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

static int read_extraction(struct smalti_report *report, const char *directory, struct smalti_error *error)
{
	SCOPED(free) char *identity = smalti_format(error, "%s/extract.json", directory);
	int64_t size = 0;
	SCOPED(close) const int file = identity ? smalti_open_regular(identity, &size, error) : -1;
	if (file < 0) {
		smalti_error_prefix(error, "%s: neither a directory of features nor a run of smalti train",
				    directory);
		return -1;
	}
	if (smalti_runs_read(directory, &report->runs, error) < 0 ||
	    smalti_failures_read(directory, &report->failures, error) < 0)
		return -1;
	report->rows = count_rows(directory);
	report->shards_bytes = bytes_of_shards(directory);
	return 0;
}

int smalti_report_read(struct smalti_report *report, const char *directory, struct smalti_error *error)
{
	*report = (struct smalti_report){.directory = directory};
	if (smalti_training_history_read(directory, &report->training, error) < 0)
		return -1;
	return report->training.head ? 0 : read_extraction(report, directory, error);
}

int smalti_report_write(const struct smalti_report *report, const char *path, struct smalti_error *error)
{
	struct smalti_writer *writer = smalti_writer_open(path, error);
	if (!writer)
		return -1;
	FILE *page = smalti_writer_stream(writer);
	smalti_page_begin(page);
	if (report->training.head)
		smalti_training_history_print(page, report->directory, report->every, &report->training);
	else
		smalti_report_data(page, report);
	smalti_page_end(page);
	return smalti_writer_commit(writer, error);
}

void smalti_report_free(struct smalti_report *report)
{
	smalti_runs_free(&report->runs);
	smalti_failures_free(&report->failures);
	smalti_training_history_free(&report->training);
}
