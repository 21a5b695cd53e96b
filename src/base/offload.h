/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A file for data that does not fit into memory. It has no name: the system frees it when it is closed,
 * however the program ends. */
struct smalti_offload;

/* Returns the free bytes of the directory's disk; -1 with an error. */
int64_t smalti_offload_space(const char *directory, struct smalti_error *error);
/* Opens a file where `bytes` are free, else SMALTI_EIO. NULL with an error. */
struct smalti_offload *smalti_offload_open(const char *directory, int64_t bytes, struct smalti_error *error);
/* Closes the file. NULL is allowed. */
void smalti_offload_close(struct smalti_offload *offload);

/* Writes to the file `user`. Any thread may call. A full disk is SMALTI_EIO. */
int smalti_offload_write(void *user, int64_t offset, int64_t bytes, const void *data,
			 struct smalti_error *error);
/* Reads from the file `user`; with `last` frees the disk space. */
int smalti_offload_read(void *user, int64_t offset, int64_t bytes, bool last, void *data,
			struct smalti_error *error);
/* Frees the disk space. Not every file system can: then it stays used until the end. */
void smalti_offload_drop(const struct smalti_offload *offload, int64_t offset, int64_t bytes);
/* Returns when what was written is on the disk. */
int smalti_offload_sync(const struct smalti_offload *offload, struct smalti_error *error);
