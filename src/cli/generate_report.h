/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_GENERATE_REPORT_H
#define SMALTI_CLI_GENERATE_REPORT_H

#include "cli/command.h"
#include "cli/progress.h"
#include "smalti/generate.h"

/* Reports to the user: failures on stderr as they happen, with --json a line for each image on the standard
 * output, else progress and a last line on stderr. */
struct smalti_report {
	bool json, quiet;
	bool broken;   /* the standard output does not take more */
	int64_t total; /* images; -1: not known */
	double began;  /* smalti_now() */
	int64_t made, skipped, failed;
	struct smalti_progress progress;
	char *last; /* file of the last image made */
};

/* One image, or a request that could not be made. */
struct smalti_outcome {
	const char *id, *file; /* file NULL: none */
	enum smalti_outcome_status { SMALTI_MADE, SMALTI_SKIPPED, SMALTI_FAILED } status;
	const struct smalti_error *error; /* of FAILED */
	uint64_t seed;
	int64_t width, height, image;
	double seconds;
	int64_t images;                     /* that it stands for */
	const struct smalti_unread *unread; /* NULL: not known */
};

/* The progress callback of a batch; `user` is the report. */
void smalti_report_watch(void *user, const struct smalti_batch_progress *progress);

void smalti_report_begin(struct smalti_report *report, bool json, bool quiet, int64_t total);
void smalti_report_add(struct smalti_report *report, const struct smalti_outcome *outcome);
/* A failure that no image has. */
void smalti_report_error(struct smalti_report *report, const struct smalti_error *error);
/* A warning, unless only failures are to be reported. */
void smalti_report_warning(struct smalti_report *report, const struct smalti_error *warning);
/* The last lines; `signal` (or NULL) is what ended the work early. Returns the command's exit status. */
enum smalti_exit smalti_report_end(struct smalti_report *report, const char *signal);

#endif
