/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Members of tar archives: ustar, with the long names and sizes of pax and GNU. */

enum { SMALTI_TAR_NAME_BYTES = 4096, SMALTI_TAR_BLOCK = 512 };

struct smalti_tar_member {
	char name[SMALTI_TAR_NAME_BYTES + 1]; /* without leading "./"; any bytes but NUL */
	bool regular;                         /* a file; else a directory, a link, ... */
	int64_t offset, bytes;                /* of its content in the archive */
	int64_t next;                         /* where the next member is looked for */
};

/* ustar's header; numbers are octal text. */
struct smalti_tar_header {
	char name[100], mode[8], owner[8], group[8], size[12], time[12], sum[8], type, link[100], magic[6],
	    version[2], owner_name[32], group_name[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct smalti_tar_header) == SMALTI_TAR_BLOCK, "a tar header is one block");

/* Returns the sum of all its bytes, with those of `sum` as blanks; some old programs added signed bytes. */
int64_t smalti_tar_sum(const struct smalti_tar_header *header, bool with_signs);

/* Tells whether name and sum are right. */
bool smalti_tar_is_header(const struct smalti_tar_header *header);

/* Reads the member at `at` of an archive of `size` bytes: 1; 0 at the end; -1. SMALTI_EFORMAT, EUNSUPPORTED:
 * the archive is damaged or cut short; nothing behind can be trusted, but the name may be set. SMALTI_EIO: it
 * cannot be read. */
int smalti_tar_member(int file, int64_t size, int64_t at, struct smalti_tar_member *member,
		      struct smalti_error *error);

/* Reads bytes offset … offset + bytes − 1 of a file; SMALTI_EFORMAT if it is shorter. */
int smalti_tar_read(int file, int64_t offset, int64_t bytes, void *to, struct smalti_error *error);
