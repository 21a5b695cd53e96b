/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_IO_SPILL_H
#define SMALTI_IO_SPILL_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* A file for what does not fit into memory. It has no name: the system takes it back when it is closed,
 * however the program ends. */
struct smalti_spill;

/* Bytes that the folder's disk has free; -1 with an error. */
int64_t smalti_spill_space(const char *folder, struct smalti_error *error);
/* In a folder that has `bytes` free, else SMALTI_EIO. NULL with an error. */
struct smalti_spill *smalti_spill_open(const char *folder, int64_t bytes, struct smalti_error *error);
/* NULL is allowed. */
void smalti_spill_close(struct smalti_spill *spill);

/* `user` is the file. Any thread may call. A full disk is SMALTI_EIO. */
int smalti_spill_write(void *user, int64_t offset, int64_t bytes, const void *data,
		       struct smalti_error *error);
/* With `last` its space is given back to the disk. */
int smalti_spill_read(void *user, int64_t offset, int64_t bytes, bool last, void *data,
		      struct smalti_error *error);

#endif
