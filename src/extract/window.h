/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/rate.h"
#include "dataset/dataset.h"
#include "extract/parts.h"
#include "jobs/input_image.h"
#include "smalti/features.h"
#include "store/run_log.h"
#include "store/store.h"

/* An item from list to row. The reader makes it; then the fetcher, the tasks and the writer own it in
 * turn. */

enum { SMALTI_ITEM_FAILURES_MAX = SMALTI_FEATURES_CAPTIONS_MAX + 2 };

struct smalti_item_failure {
	const char *stage; /* as in shard/shard.h */
	char *reason;
};

struct smalti_extract_item {
	/* The item owns the memory of its pointers; tasks fill in the values. A text without tokens is
	 * absent, or it failed. */
	struct smalti_features_row row;
	char *problems[SMALTI_FEATURES_CAPTIONS_MAX]; /* faults of a text's values */

	char *path; /* of the image; NULL: the list has none */
	int64_t offset, bytes;
	void *file; /* the fetcher's results: the image's bytes, then the opened image, or an error */
	struct smalti_input_image *input;
	struct smalti_input_info picture; /* of the opened image; zeros: there is none */
	bool is_ordered, is_fetched;
	struct smalti_extract_item *next_ordered;
	struct smalti_error fetched; /* code 0: input is there */

	struct smalti_error read; /* code 0: the task found no damage in the image */

	bool kept; /* its row was complete in the shard that is made anew, and is copied */
	struct smalti_item_failure failures[SMALTI_ITEM_FAILURES_MAX];
	int failure_count;
};

/* Notes a failure of an item. Only the first line of the reason is kept; without memory for it a shorter text
 * is. */
void smalti_item_fail(struct smalti_extract_item *item, const char *stage, const char *reason);

/* A fetcher reads the images' files by its own threads, so that no worker waits for a slow disk. */
struct smalti_fetcher;

/* Opens a fetcher, whose reads add to `rate`, and wait for it. */
struct smalti_fetcher *smalti_fetcher_open(const struct smalti_input_options *options,
					   struct smalti_rate *rate, struct smalti_error *error);
/* Reads the item's image into memory and opens it; item->fetched has the result. */
void smalti_fetcher_add(struct smalti_fetcher *fetcher, struct smalti_extract_item *item);
/* Waits until the item has been fetched, or a tenth of a second has passed. Tells whether it has. */
bool smalti_fetcher_wait(struct smalti_fetcher *fetcher, const struct smalti_extract_item *item);
/* Counts the items that wait for files. */
int64_t smalti_fetcher_depth(struct smalti_fetcher *fetcher);
/* Drops items not begun. After it the items may be freed. NULL is fine. */
void smalti_fetcher_close(struct smalti_fetcher *fetcher);

/* The most items of a window, and windows that are computed or wait to be written. */
enum { SMALTI_WINDOW_ITEMS_MAX = 512, SMALTI_WINDOWS_MAX = 3 };

/* Neighbouring items of one shard that are computed and written together: enough that captions of similar
 * lengths and images of similar shapes meet, few enough for memory. No row depends on where windows end. */
struct smalti_window {
	struct smalti_range range; /* of the shard */
	int64_t first, count;
	struct smalti_extract_item *items;
	char *old;    /* path of the shard that is made anew; NULL: none */
	bool last;    /* the shard ends with it, complete or not */
	int64_t jobs; /* running or not begun */
	bool done;    /* rows are complete: guarded by the writer */
	struct smalti_shard_timing timing;
	struct smalti_window *next;
};

/* Reads the range's next items, from `first` on: captions as tokens, images ordered from the fetcher (NULL:
 * no images). If the run `ends` with the range, it takes half of the rest at most, so that little is
 * unwritten when the workers are done. `old` is the path of the shard that is made anew, or NULL: its
 * complete items are not read. */
struct smalti_window *smalti_window_read(const struct smalti_extract_parts *parts,
					 struct smalti_fetcher *fetcher, const struct smalti_range *range,
					 bool ends, int64_t first, const char *old,
					 struct smalti_error *error);
/* Counts what a window holds so far. */
struct smalti_window_load {
	int64_t items, tokens, images, file_bytes;
};
/* Tells whether a window takes no more items; `enough` items are a window near the end of a run. */
bool smalti_window_is_full(const struct smalti_extract_parts *parts, const struct smalti_window_load *load,
			   int64_t enough);
/* Makes a window without items that ends a shard's range before `at`; it is done. */
struct smalti_window *smalti_window_empty(const struct smalti_range *range, int64_t at,
					  struct smalti_error *error);
void smalti_window_free(
    struct smalti_window *window); /* after the fetcher has been waited for; NULL is fine */
/* Returns the bytes of a square image's features, as a square has about the area of every bin; 0 without
 * images. */
int64_t smalti_window_latent_bytes(const struct smalti_extract_parts *parts);

/* The measures of a run, for the log that `smalti report` draws. A record that is all zeros records
 * nothing. */
struct smalti_run_record {
	const struct smalti_extract_parts *parts;
	struct smalti_run_log *log; /* NULL: it cannot be written */
	struct smalti_error lost;   /* why it cannot be written, or not to its end */
	int workers;
	double *busy, *busy_before; /* seconds of each worker; those before this run */
	struct smalti_run_sample last;
};

void smalti_run_record_open(struct smalti_run_record *record, const struct smalti_extract_parts *parts,
			    const struct smalti_extract_progress *progress);
/* Returns what is computed together, by which memory, as an object. */
cJSON *smalti_extract_sizes_json(const struct smalti_extract_progress *progress);
/* Adds the state of the run; `busy` is filled in. */
void smalti_run_record_add(struct smalti_run_record *record, struct smalti_run_sample sample);
/* Adds the captions and images of a complete window. */
void smalti_run_record_window(struct smalti_run_record *record, const struct smalti_window *window);
void smalti_run_record_close(struct smalti_run_record *record, const char *end);

/* A thread that writes the rows of windows into shards, in their order, and commits each shard with its last
 * window. So no worker waits for a slow disk, until the unwritten windows fill the memory. */
struct smalti_row_writer;

/* Opens a writer, whose writes add to `rate`, and wait for it. */
struct smalti_row_writer *smalti_row_writer_open(struct smalti_store *store,
						 const struct smalti_shard_schema *schema,
						 enum smalti_compression compression,
						 struct smalti_rate *rate, struct smalti_error *error);

/* Adds the next window. The writer owns it now, although its rows are not complete. A shard's windows follow
 * each other. */
void smalti_row_writer_add(struct smalti_row_writer *writer, struct smalti_window *window);
/* Says that the window's rows are complete. */
void smalti_row_writer_done(struct smalti_row_writer *writer, struct smalti_window *window);

struct smalti_row_writer_state {
	int64_t waiting;           /* windows that are not written */
	int64_t rows;              /* rows that are done and wait */
	int64_t written, bytes;    /* rows in committed shards, and their values' bytes before compression */
	double seconds;            /* of writing */
	struct smalti_error error; /* code 0: none. After one nothing more is written */
};
void smalti_row_writer_state(struct smalti_row_writer *writer, struct smalti_row_writer_state *state);
/* Waits until no more than `max` windows wait, or 0.2 s have passed. */
void smalti_row_writer_await(struct smalti_row_writer *writer, int64_t max);

/* Writes done windows up to the first that is not, drops the others, and commits the open shard. *state is
 * the last one. -1 with the first failure. NULL is fine. */
int smalti_row_writer_close(struct smalti_row_writer *writer, struct smalti_row_writer_state *state,
			    struct smalti_error *error);
