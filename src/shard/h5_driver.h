/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_SHARD_H5_DRIVER_H
#define SMALTI_SHARD_H5_DRIVER_H

#include "shard/h5.h"

/* Lets HDF5 write to the file's descriptor through us (h5.h says why). */
int smalti_h5_set_driver(hid_t access, struct smalti_h5_file *file);

#endif
