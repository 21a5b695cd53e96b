/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_SHARD_H5_DRIVER_H
#define SMALTI_SHARD_H5_DRIVER_H

#include "shard/h5.h"

/* Lets HDF5 write to the file's descriptor through us (h5.h says why). */
int smalti_h5_set_driver(hid_t access, struct smalti_h5_file *file);
/* All of it, however often the system stops short; errno says why not. */
int smalti_h5_pwrite(int fd, const void *data, size_t bytes, int64_t offset);

#endif
