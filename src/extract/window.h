/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/rate.h"
#include "dataset/dataset.h"
#include "extract/parts.h"
#include "jobs/input_image.h"
#include "smalti/features.h"
#include "store/run_log.h"
#include "store/store.h"

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

/* The reason may have several lines of which the first is kept; without memory for it a shorter one stands.
 */
void smalti_item_fail(struct smalti_extract_item *item, const char *stage, const char *reason);

/* Threads of their own read the images' files, so that a slow disk keeps no worker waiting. */
struct smalti_fetcher;

/* What is read is added to `rate`, and waits for it. */
struct smalti_fetcher *smalti_fetcher_open(const struct smalti_input_options *options,
					   struct smalti_rate *rate, struct smalti_error *error);
/* Reads the item's image into memory and opens it; item->fetched says what came of it. */
void smalti_fetcher_add(struct smalti_fetcher *fetcher, struct smalti_extract_item *item);
/* Until the item has been fetched, or a tenth of a second has passed: whether it has. */
bool smalti_fetcher_wait(struct smalti_fetcher *fetcher, const struct smalti_extract_item *item);
/* Items that wait for their files. */
int64_t smalti_fetcher_depth(struct smalti_fetcher *fetcher);
/* Drops what was not begun. After it the items may go. NULL is fine. */
void smalti_fetcher_close(struct smalti_fetcher *fetcher);

/* Neighbouring items of one shard that are computed together and written together: enough that captions of
 * like lengths and images of like shapes meet, few enough to be held in memory. No row depends on where
 * windows end. */
struct smalti_window {
	struct smalti_range range; /* of the shard */
	int64_t first, count;
	struct smalti_extract_item *items;
	char *old;    /* path of the shard that is made anew; NULL: none */
	bool last;    /* the shard ends with it, complete or not */
	int64_t jobs; /* under way or not begun */
	bool done;    /* rows are complete: guarded by the writer */
	struct smalti_shard_timing timing;
	struct smalti_window *next;
};

/* Reads the next items of the range, from `first` on: their captions as tokens, their images ordered from
 * the fetcher (NULL: no images). Where the run `ends` with the range, half of what is left at most, so that
 * little is to be written when the workers are done. `old` is the path of the shard that is made anew, or
 * NULL: of items that it has whole nothing is read. */
struct smalti_window *smalti_window_read(const struct smalti_extract_parts *parts,
					 struct smalti_fetcher *fetcher, const struct smalti_range *range,
					 bool ends, int64_t first, const char *old,
					 struct smalti_error *error);
/* One that ends a shard's range before `at`, without items; it is done. */
struct smalti_window *smalti_window_empty(const struct smalti_range *range, int64_t at,
					  struct smalti_error *error);
void smalti_window_free(
    struct smalti_window *window); /* after the fetcher has been waited for; NULL is fine */
/* Returns the bytes of an image's features, as if it were a square: that is about the area of every bin. 0
 * without images. */
int64_t smalti_window_latent_bytes(const struct smalti_extract_parts *parts);

/* What a run measures of itself, into the log that `smalti report` draws. All zeros, it records nothing. */
struct smalti_run_record {
	const struct smalti_extract_parts *parts;
	struct smalti_run_log *log; /* NULL: it cannot be written */
	struct smalti_error lost;   /* why not, or why not to its end */
	int workers;
	double *busy, *busy_before; /* seconds of each worker; those before this run */
	struct smalti_run_sample last;
};

void smalti_run_record_open(struct smalti_run_record *record, const struct smalti_extract_parts *parts,
			    const struct smalti_extract_progress *progress);
/* Returns what is computed together, and by which memory, as an object. */
cJSON *smalti_extract_sizes_json(const struct smalti_extract_progress *progress);
/* Where the run is; `busy` is filled in. */
void smalti_run_record_add(struct smalti_run_record *record, struct smalti_run_sample sample);
/* The captions and images of a window that is complete. */
void smalti_run_record_window(struct smalti_run_record *record, const struct smalti_window *window);
void smalti_run_record_close(struct smalti_run_record *record, const char *end);

/* A thread that writes the rows of windows into shards, in their order, and commits each shard with its last
 * window: so a slow disk keeps no worker waiting, until the windows that are not written are as many as
 * memory takes. */
struct smalti_row_writer;

/* What is written is added to `rate`, and waits for it. */
struct smalti_row_writer *smalti_row_writer_open(struct smalti_store *store,
						 const struct smalti_shard_schema *schema,
						 enum smalti_compression compression,
						 struct smalti_rate *rate, struct smalti_error *error);

/* The next window; the writer's own from here on, though its rows are not there yet. A shard's windows follow
 * each other. */
void smalti_row_writer_add(struct smalti_row_writer *writer, struct smalti_window *window);
/* Its rows are there. */
void smalti_row_writer_done(struct smalti_row_writer *writer, struct smalti_window *window);

struct smalti_row_writer_state {
	int64_t waiting;           /* windows that are not written */
	int64_t rows;              /* that are done and wait */
	int64_t written, bytes;    /* rows in committed shards, and their values' bytes before compression */
	double seconds;            /* of writing */
	struct smalti_error error; /* code 0: none. After one nothing more is written */
};
void smalti_row_writer_state(struct smalti_row_writer *writer, struct smalti_row_writer_state *state);
/* Until no more than `most` windows wait, or some tenths of a second have passed. */
void smalti_row_writer_await(struct smalti_row_writer *writer, int64_t most);

/* Writes what is done, drops the windows from the first on that is not, and commits what there is of the
 * shard that was begun. *state is the last one. -1 with what failed ever. NULL is fine. */
int smalti_row_writer_close(struct smalti_row_writer *writer, struct smalti_row_writer_state *state,
			    struct smalti_error *error);
