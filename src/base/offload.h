/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A file for what does not fit into memory. It has no name: the system takes it back when it is closed,
 * however the program ends. */
struct smalti_offload;

/* Bytes that the directory's disk has free; -1 with an error. */
int64_t smalti_offload_space(const char *directory, struct smalti_error *error);
/* In a directory that has `bytes` free, else SMALTI_EIO. NULL with an error. */
struct smalti_offload *smalti_offload_open(const char *directory, int64_t bytes, struct smalti_error *error);
/* NULL is allowed. */
void smalti_offload_close(struct smalti_offload *offload);

/* `user` is the file. Any thread may call. A full disk is SMALTI_EIO. */
int smalti_offload_write(void *user, int64_t offset, int64_t bytes, const void *data,
			 struct smalti_error *error);
/* With `last` its space is given back to the disk. */
int smalti_offload_read(void *user, int64_t offset, int64_t bytes, bool last, void *data,
			struct smalti_error *error);
/* Gives the space back to the disk. Not every file system can: then it stays taken until the end. */
void smalti_offload_drop(const struct smalti_offload *offload, int64_t offset, int64_t bytes);
/* Returns when what was written is on the disk. */
int smalti_offload_sync(const struct smalti_offload *offload, struct smalti_error *error);
