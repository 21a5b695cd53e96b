/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "harness.h"
#include "root.h"
#include "store/store.h"

/* A directory of features at `root` (root.h) as several processes fill it with test_row_make()'s rows. */

struct smalti_store *store_open_as(const char *identity, int64_t lease, struct smalti_error *error);
/* With an identity and a lease that serve; ends the program where that fails. */
struct smalti_store *store_open(void);

/* A range of at most `items` items of 0 … end − 1, as smalti_store_claim(). */
enum smalti_claim_status store_claim(struct smalti_store *store, int64_t end, int64_t items,
				     struct smalti_range *range, char holder[256]);
/* Writes and commits `rows` rows of a claimed range; whether it was lost. */
bool store_make(struct smalti_store *store, const struct smalti_range *range, int64_t rows, bool whole);
/* All that is left of 0 … end − 1, waiting for others where need be. */
void store_fill(struct smalti_store *store, int64_t end, int64_t items);

/* The items of 0 … end − 1 are committed once, with the right rows. */
void store_check_all(int64_t end, bool whole);
/* The directory holds nothing besides what it should, when no process is at work on it. */
void store_check_cleanup(void);
