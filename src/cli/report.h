/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_REPORT_H
#define SMALTI_CLI_REPORT_H

#include "cli/command.h"
#include "cli/report_failures.h"
#include "store/run_read.h"

#include <stdio.h>

/* What the page is of. */
struct smalti_report_data {
	const char *directory;
	struct smalti_runs runs;
	struct smalti_failures failures;
	int64_t rows, shards_bytes; /* committed; rows -1: not known */
};

/* As JSON that may stand in a page: src/cli/report_data.c. */
void smalti_report_data(FILE *page, const struct smalti_report_data *data);
/* A JSON string of any bytes: what is no UTF-8 becomes U+FFFD, and nothing in it ends a script. */
void smalti_page_text(FILE *page, const char *text);

/* The page of report.html.in, in two parts between which the data belongs: src/cli/report_data.c. */
void smalti_page_begin(FILE *page);
void smalti_page_end(FILE *page);

#endif
