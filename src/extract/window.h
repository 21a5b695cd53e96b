/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_WINDOW_H
#define SMALTI_EXTRACT_WINDOW_H

#include "extract/fetcher.h"
#include "extract/parts.h"
#include "store/store.h"

/* The most tokens that a window has, but for its last caption: those of some seconds of work, a minute on a
 * small machine with a large model, so that one that is to stop does so soon. */
int64_t smalti_window_tokens(const struct smalti_extract_parts *parts);

/* Neighbouring items of one shard that are computed together and written together: enough that captions of
 * like lengths and images of like shapes meet, few enough to be held in memory. Where windows end depends
 * on the list alone, and no row depends on it. */
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

/* Items in a shard: as the options say, or as many as make about so many bytes, judged by the first of
 * `within`. -1 with an error. */
int64_t smalti_shard_items(const struct smalti_extract_parts *parts, const struct smalti_range *within,
			   struct smalti_error *error);

#endif
