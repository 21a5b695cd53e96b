/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "harness.h"
#include "root.h"
#include "store/store.h"

/* A directory of features at `root` (root.h), which several processes fill with test_row_make()'s rows. */

struct smalti_store *store_open_as(const char *identity, int64_t lease, struct smalti_error *error);
/* Opens a store with a suitable identity and lease; ends the program on failure. */
struct smalti_store *store_open(void);

/* Claims a range of at most `items` items of 0 … end − 1, as smalti_store_claim(). */
enum smalti_claim_status store_claim(struct smalti_store *store, int64_t end, int64_t items,
				     struct smalti_range *range, char holder[256]);
/* Writes and commits `rows` rows of a claimed range; tells whether it was lost. */
bool store_make(struct smalti_store *store, const struct smalti_range *range, int64_t rows, bool whole);
/* Fills the rest of 0 … end − 1, and waits for other processes where necessary. */
void store_fill(struct smalti_store *store, int64_t end, int64_t items);

/* Checks that the items of 0 … end − 1 are committed once, with the right rows. */
void store_check_all(int64_t end, bool whole);
/* Checks that the directory has no leftovers when no process works on it. */
void store_check_cleanup(void);
