/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"
#include "cli/report_training.h"
#include "store/run_read.h"

/* The lines of a directory's failed.jsonl, grouped by stage and by reasons that are alike but for names and
 * numbers. */

enum { SMALTI_FAILURE_EXAMPLES = 5, SMALTI_FAILURE_GROUPS = 100 };

struct smalti_failure_group {
	char *stage, *reason;
	int64_t count;
	char *examples[SMALTI_FAILURE_EXAMPLES]; /* keys of the first ones */
};

struct smalti_failures {
	struct smalti_failure_group groups[SMALTI_FAILURE_GROUPS]; /* most frequent first */
	int count;
	int64_t lines, items, others, unreadable; /* others: of groups that there was no room for */
	int64_t last;                             /* index of the line before */
};

/* None if there is no such file. */
int smalti_failures_read(const char *directory, struct smalti_failures *failures, struct smalti_error *error);
void smalti_failures_free(struct smalti_failures *failures);

/* What is general in a reason: without the item's key and the path that ends in it, numbers as '#'. In place.
 */
void smalti_failure_generalize(char *reason, const char *key);

/* What the page is of. */
struct smalti_report_data {
	const char *directory;
	struct smalti_runs runs;
	struct smalti_failures failures;
	int64_t rows, shards_bytes; /* committed; rows -1: not known */
	int64_t every;              /* seconds after which the page loads itself again; 0: never */
	const struct smalti_training_history *training; /* NULL: it is of an extraction, as the others say */
};

/* As JSON that may stand in a page: src/cli/report_data.c. */
void smalti_report_data(FILE *page, const struct smalti_report_data *data);
