/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_IO_DATASET_WALK_H
#define SMALTI_IO_DATASET_WALK_H

#include "io/dataset.h"

#include <stdio.h>

/* What a folder holds for a data set, in a list: of each item a byte that says what it is, its path below the
 * folder, a NUL. */
enum { SMALTI_WALK_PICTURE = 'p', SMALTI_WALK_TEXT = 't' };

/* Pictures, and, if pictures are not asked for, captions without one, whose path is without the extension; in
 * the bytewise order of the names, folder by folder. Names that begin with a dot are passed over, as is a
 * folder that was already there under another name. */
int smalti_dataset_walk(const struct smalti_dataset_options *options, FILE *list, struct smalti_error *error);

#endif
