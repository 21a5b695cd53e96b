/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/error.h>
#include <stdbool.h>
#include <stdint.h>

/** @file
 * Verifies and repairs a directory of features. Needs no session.
 *
 * Threads: any.
 */

SMALTI_BEGIN_DECLS

/** A problem that was found. Strings are valid during the call. */
struct smalti_problem {
	const char *kind; /**< "damaged", "missing", "gap", "overlap", "stray", "different", "unfinished" */
	const char *file; /**< its name in the directory */
	int64_t row;      /**< the item's index; -1: it is not in a row */
	const char *key;  /**< of the item; NULL: it is not in a row, or unknown */
	const char *text; /**< one line with all of it */
};

struct smalti_verify_options {
	/** Repair what can be repaired: broken shards are renamed to NAME.broken, so that the next `smalti
	 * extract` computes their items again; files that nobody needs are removed; failed.jsonl,
	 * manifest.json and features.h5 are written again as far as their parts are there. */
	bool repair;
	void *user;
	void (*problem)(void *user, const struct smalti_problem *problem); /**< may be NULL */
	void (*progress)(void *user, int64_t done, int64_t bytes);         /**< may be NULL */
	/** Called several times per second while it waits for the lock on the directory, which `holder` has
	 * held for `seconds`; false ends the wait with SMALTI_ECANCELLED. May be NULL. A holder that shows no
	 * sign of life for a quarter of an hour is not waited for any longer: SMALTI_EIO. */
	bool (*waiting)(void *user, const char *holder, double seconds);
};

struct smalti_verify_result {
	int64_t shards, rows, failures, bytes; /**< what is committed */
	int64_t problems;
	/** After a repair. @{ */
	int64_t dropped; /**< items that have to be extracted again */
	int64_t left;    /**< problems that cannot be repaired */
			 /** @} */
};

/** Reads every byte of the directory's features; `options` NULL: no repair, no callbacks. 0 when that
 * was done, whatever was found; -1 with SMALTI_EINVAL (no directory of features), SMALTI_EIO or
 * SMALTI_ENOMEM. */
int smalti_verify(const char *directory, const struct smalti_verify_options *options,
		  struct smalti_verify_result *result, struct smalti_error *error);

SMALTI_END_DECLS
