/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_FETCHER_H
#define SMALTI_EXTRACT_FETCHER_H

#include "extract/item.h"

/* Threads of their own read the images' files, so that a slow disk keeps no worker waiting. */
struct smalti_fetcher;

struct smalti_fetcher *smalti_fetcher_open(const struct smalti_input_options *options,
					   struct smalti_error *error);
/* Reads the item's image into memory and opens it; item->fetched says what came of it. */
void smalti_fetcher_add(struct smalti_fetcher *fetcher, struct smalti_extract_item *item);
/* Until the item has been fetched. */
void smalti_fetcher_wait(struct smalti_fetcher *fetcher, const struct smalti_extract_item *item);
/* Items that wait for their files. */
int64_t smalti_fetcher_depth(struct smalti_fetcher *fetcher);
/* Drops what was not begun. After it the items may go. NULL is fine. */
void smalti_fetcher_close(struct smalti_fetcher *fetcher);

#endif
