/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_ITEM_H
#define SMALTI_EXTRACT_ITEM_H

#include "dataset/dataset.h"
#include "jobs/input_image.h"
#include "smalti/features.h"

/* An item on its way from the list to its row. The reader makes it, then the fetcher, the tasks and the
 * writer have it one after the other. */

enum { SMALTI_ITEM_FAILURES_MAX = SMALTI_FEATURES_CAPTIONS_MAX + 2 };

struct smalti_item_failure {
	const char *stage; /* as in shard/shard.h */
	char *reason;
};

struct smalti_extract_item {
	/* What its pointers name is the item's own; tasks fill in the values. No tokens of a text: there is
	 * none, or it failed. */
	struct smalti_features_row row;
	char *problems[SMALTI_FEATURES_CAPTIONS_MAX]; /* what was wrong with a text's values */

	char *path; /* of the image; NULL: none was named */
	int64_t offset, bytes;
	void *file; /* the fetcher's: the image's bytes, then the opened image, or why not */
	struct smalti_input_image *input;
	bool is_ordered, is_fetched;
	struct smalti_extract_item *next_ordered;
	struct smalti_error fetched; /* code 0: input is there */

	struct smalti_error read; /* code 0: the task found no damage in the image */

	bool kept; /* its row in the shard that is made anew was complete: it is copied */
	struct smalti_item_failure failures[SMALTI_ITEM_FAILURES_MAX];
	int failure_count;
};

/* Copies what the list says. */
int smalti_item_open(struct smalti_extract_item *item, const struct smalti_record *record,
		     struct smalti_error *error);
/* The reason may have several lines of which the first is kept; without memory for it a shorter one stands.
 */
void smalti_item_fail(struct smalti_extract_item *item, const char *stage, const char *reason);
void smalti_item_close(struct smalti_extract_item *item);

#endif
