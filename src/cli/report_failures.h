/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_REPORT_FAILURES_H
#define SMALTI_CLI_REPORT_FAILURES_H

#include "base/error.h"

#include <stdint.h>

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
};

/* None if there is no such file. */
int smalti_failures_read(const char *directory, struct smalti_failures *failures, struct smalti_error *error);
void smalti_failures_free(struct smalti_failures *failures);

/* What is general in a reason: without the item's key and the path that ends in it, numbers as '#'. In place.
 */
void smalti_failure_generalize(char *reason, const char *key);

#endif
