/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_REPORT_H
#define SMALTI_CLI_REPORT_H

#include "cli/command.h"
#include "cli/report_failures.h"
#include "store/run_read.h"

#include <stdio.h>

/* What the page is of. */
struct smalti_report_data {
	const char *folder;
	struct smalti_runs runs;
	struct smalti_failures failures;
	int64_t rows, shards_bytes; /* committed; rows -1: not known */
};

/* src/cli/report_page.c */
void smalti_report_page(FILE *page, const struct smalti_report_data *data);

/* Sections on runs: src/cli/report_runs.c. */
void smalti_report_sessions(FILE *page, const struct smalti_runs *runs);
void smalti_report_histograms(FILE *page, const struct smalti_runs *runs);
void smalti_report_runs(FILE *page, const struct smalti_runs *runs);

extern const struct smalti_command smalti_report_command;

#endif
