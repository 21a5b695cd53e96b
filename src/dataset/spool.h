/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_DATASET_SPOOL_H
#define SMALTI_DATASET_SPOOL_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* The directory for files without a name: $TMPDIR, or /tmp. */
const char *smalti_temporary_directory(void);

/* Copies a stream to its end into a file without a name in that directory, so that it can be read again: its
 * descriptor, or -1. Of more than `limit` bytes nothing is kept (EUNSUPPORTED); 0 stands for half of what is
 * free there. `watch` (may be NULL) is called some times a second with 0; false ends it (ECANCELLED). */
int smalti_spool(int from, const char *name, int64_t limit, bool (*on_progress)(void *user, double share),
		 void *user, struct smalti_error *error);

#endif
