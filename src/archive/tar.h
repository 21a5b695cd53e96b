/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_ARCHIVE_TAR_H
#define SMALTI_ARCHIVE_TAR_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Members of tar archives: ustar, with the long names and sizes of pax and GNU. */

enum { SMALTI_TAR_NAME_BYTES = 4096, SMALTI_TAR_BLOCK = 512 };

struct smalti_tar_member {
	char name[SMALTI_TAR_NAME_BYTES + 1]; /* without leading "./"; any bytes but NUL */
	bool regular;                         /* a file: else a directory, a link, ... */
	int64_t offset, bytes;                /* of its content in the archive */
	int64_t next;                         /* where the next member is looked for */
};

/* Whether the block is a header: its checksum is right. */
bool smalti_tar_is_header(const unsigned char block[SMALTI_TAR_BLOCK]);

/* The member at `at` of an archive of `size` bytes: 1; 0 at the end; -1 (SMALTI_EFORMAT, EUNSUPPORTED) where
 * the archive is damaged or cut short: nothing behind is to be trusted, but the name may be set; -1
 * (SMALTI_EIO) where it cannot be read. */
int smalti_tar_member(int file, int64_t size, int64_t at, struct smalti_tar_member *member,
		      struct smalti_error *error);

/* Reads bytes offset … offset + bytes − 1 of a file; SMALTI_EFORMAT if it is shorter. */
int smalti_tar_read(int file, int64_t offset, int64_t bytes, void *to, struct smalti_error *error);

#endif
