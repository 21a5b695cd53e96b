/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_ARCHIVE_ZIP_WRITER_H
#define SMALTI_ARCHIVE_ZIP_WRITER_H

#include "base/error.h"

#include <stdint.h>
#include <stdio.h>

/* Writes a zip archive into any stream, member by member, as plain as they come: compressed, without time
 * stamps, without zip64. What would need zip64 (4 GiB, 65,535 members) is SMALTI_EUNSUPPORTED. Write errors
 * of the stream are left to who commits it. */
struct smalti_zip;

struct smalti_zip *smalti_zip_begin(FILE *stream, struct smalti_error *error);
int smalti_zip_add(struct smalti_zip *zip, const char *name, const void *data, int64_t bytes,
		   struct smalti_error *error);
/* Writes the directory; frees the archive in any case. */
int smalti_zip_finish(struct smalti_zip *zip, struct smalti_error *error);
void smalti_zip_discard(struct smalti_zip *zip); /* NULL is fine */

#endif
