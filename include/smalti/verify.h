/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_VERIFY_H
#define SMALTI_VERIFY_H

#include <smalti/error.h>
#include <stdbool.h>
#include <stdint.h>

/** @file
 * Verifies and repairs a directory of features. Needs no
 * session.
 *
 * Threads: any.
 */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** A problem that was found. Strings are valid during the call. */
struct smalti_problem {
	const char *kind; /**< "damaged", "missing", "gap", "overlap", "orphan", "different", "unfinished" */
	const char *file; /**< its name in the directory */
	int64_t row;      /**< the item's index; -1: it is not in a row */
	const char *key;  /**< of the item; NULL: it is not in a row, or unknown */
	const char *text; /**< one line, that names all of it */
};

struct smalti_verify_options {
	/** Shards that are broken are renamed to NAME.broken, so that the next `smalti extract` makes their
	 * items again; what nobody needs is removed; failed.jsonl, manifest.json and features.h5 are made
	 * again, as far as there is enough to make them of. */
	bool repair;
	void *user;
	void (*problem)(void *user, const struct smalti_problem *problem); /**< may be NULL */
	void (*progress)(void *user, int64_t done, int64_t bytes);         /**< may be NULL */
	/** Some times a second while it waits for the directory, which `holder` changes just now: for how
	 * long, and whether to go on (else SMALTI_ECANCELLED). May be NULL. Who gives no sign of life for a
	 * quarter of an hour is waited for no longer: SMALTI_EIO. */
	bool (*waiting)(void *user, const char *holder, double seconds);
};

struct smalti_verify_result {
	int64_t shards, rows, failures, bytes; /**< that are committed */
	int64_t problems;
	/** After a repair. @{ */
	int64_t dropped; /**< items that have to be made again */
	int64_t left;    /**< problems that cannot be put right */
			 /** @} */
};

/** Reads every byte of the directory's features; `options` NULL: no repair, no callbacks. 0 when that
 * was done, whatever was found; -1 with SMALTI_EINVAL (no directory of features), SMALTI_EIO or
 * SMALTI_ENOMEM. */
int smalti_verify(const char *directory, const struct smalti_verify_options *options,
		  struct smalti_verify_result *result, struct smalti_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
