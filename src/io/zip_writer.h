/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_IO_ZIP_WRITER_H
#define SMALTI_IO_ZIP_WRITER_H

#include "base/error.h"

#include <stdint.h>
#include <stdio.h>

/* Writes a zip archive into a stream that can be positioned, member by member, as plain as they come: no
 * descriptors behind the data, no time stamps, no zip64. What would need zip64 (4 GiB, 65,535 members) is
 * SMALTI_EUNSUPPORTED. Write errors of the stream are left to who commits it. */
struct smalti_zip;

enum smalti_zip_method { SMALTI_ZIP_STORED = 0, SMALTI_ZIP_DEFLATED = 8 };

struct smalti_zip *smalti_zip_begin(FILE *stream, struct smalti_error *error);
/* Ends the member before and begins the next. */
int smalti_zip_member(struct smalti_zip *zip, const char *name, enum smalti_zip_method method,
		      struct smalti_error *error);
int smalti_zip_write(struct smalti_zip *zip, const void *data, int64_t bytes, struct smalti_error *error);
/* Writes the directory; frees the archive in any case. */
int smalti_zip_finish(struct smalti_zip *zip, struct smalti_error *error);
void smalti_zip_discard(struct smalti_zip *zip); /* NULL is fine */

#endif
