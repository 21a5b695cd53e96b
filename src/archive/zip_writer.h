/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Writes a zip archive into a file, from the stream's position on, member by member: compressed, without time
 * stamps; zip64 records only where they are needed (4 GiB, 65,535 members). The caller checks the stream for
 * write errors when it commits it. */
struct smalti_zip;

struct smalti_zip *smalti_zip_begin(FILE *stream, struct smalti_error *error);
/* Refuses a name of more than 65,535 bytes: SMALTI_EUNSUPPORTED. */
int smalti_zip_add(struct smalti_zip *zip, const char *name, const void *data, int64_t bytes,
		   struct smalti_error *error);
/* Writes the directory; frees the archive in any case. */
int smalti_zip_finish(struct smalti_zip *zip, struct smalti_error *error);
void smalti_zip_discard(struct smalti_zip *zip); /* NULL is fine */
