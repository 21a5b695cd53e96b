/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "report/training.h"
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

/* Reads the failures; none if there is no such file. */
int smalti_failures_read(const char *directory, struct smalti_failures *failures, struct smalti_error *error);
void smalti_failures_free(struct smalti_failures *failures);

/* Reduces a reason in place to what is general: removes the item's key and the path that ends in it, and
 * makes numbers '#'. */
void smalti_failure_generalize(char *reason, const char *key);

/* What a directory of features or of a training run says of itself, for a page. */
struct smalti_report {
	const char *directory; /* the caller's; outlives the report */
	struct smalti_runs runs;
	struct smalti_failures failures;
	int64_t rows, shards_bytes; /* committed; rows -1: not known */
	int64_t every;              /* seconds after which the page loads itself again; 0: never */
	struct smalti_training_history training; /* without a head the report is of an extraction */
};

/* Reads what there is so far. Free the report whatever fails. */
int smalti_report_read(struct smalti_report *report, const char *directory, struct smalti_error *error);
void smalti_report_free(struct smalti_report *report);
/* Writes the page, which appears complete or not at all. */
int smalti_report_write(const struct smalti_report *report, const char *path, struct smalti_error *error);

/* Prints the data of an extraction as JSON that may stand in a page: src/report/extraction.c. */
void smalti_report_data(FILE *page, const struct smalti_report *report);
