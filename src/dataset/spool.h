/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_DATASET_SPOOL_H
#define SMALTI_DATASET_SPOOL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The directory for files without a name: $TMPDIR, or /tmp. */
const char *smalti_temporary_directory(void);

/* Streams that are kept one behind the other in a file without a name in that directory, so that they can be
 * read again, and anywhere. */
struct smalti_spool {
	int file;             /* -1: nothing is kept yet */
	char path[32];        /* by which this process can open it */
	int64_t first, bytes; /* where the last stream begins: at a multiple of 512 bytes; where it ends */
	int64_t limit;        /* of all bytes; 0, to begin with: half of what is free there */
};

bool smalti_is_gzip(const void *start, size_t length);

/* Keeps a stream to its end: decompressed, if it is gzip's (each member of it, with zeros behind the last). A
 * damaged one, or one that is cut short, is SMALTI_EFORMAT; more than the limit SMALTI_EUNSUPPORTED.
 * `on_progress` (may be NULL) is called some times a second with 0; false ends it (ECANCELLED). Failed or
 * not, the caller closes the file. */
int smalti_spool_add(struct smalti_spool *spool, int from, const char *name,
		     bool (*on_progress)(void *user, double share), void *user, struct smalti_error *error);

#endif
