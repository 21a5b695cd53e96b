/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Writes a tar archive (POSIX ustar; pax headers for names past 100 bytes or of other characters than ASCII)
 * into any stream, member by member, without time stamps or owners. The caller that commits the stream checks
 * its write errors. Initialise with the stream. */
struct smalti_tar_writer {
	FILE *stream;
	int64_t bytes; /* written */
};

/* Begins a regular file of exactly `bytes`, for smalti_tar_write(). SMALTI_EUNSUPPORTED from 8 GiB on. */
int smalti_tar_add(struct smalti_tar_writer *tar, const char *name, int64_t bytes,
		   struct smalti_error *error);
void smalti_tar_write(struct smalti_tar_writer *tar, const void *data, int64_t bytes);
void smalti_tar_finish(struct smalti_tar_writer *tar);
