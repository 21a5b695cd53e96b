/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/rate.h"

#include <hdf5.h>

/* Enclose every call of HDF5: it runs on one thread at a time, and without a word on the standard error. */
void smalti_h5_enter(void);
void smalti_h5_leave(void);

/* A new file. HDF5 does not come to an end in good order when a disk is full, so it is not told: writes that
 * fail are remembered here, and those after them go nowhere. */
struct smalti_h5_file {
	const char *path;
	int fd;
	int failure;              /* errno of the first write that failed, or 0 */
	struct smalti_rate *rate; /* what writes are added to; NULL: nothing */
	hid_t id;
};

/* Makes or empties the file; `path` has to stay. */
int smalti_h5_create(struct smalti_h5_file *file, const char *path, struct smalti_error *error);
/* Ends HDF5's work on it; the descriptor stays open. -1 also if a write had failed. */
int smalti_h5_close(struct smalti_h5_file *file, struct smalti_error *error);
/* SCOPED(hid) releases identifiers of all kinds; negative ones are none. */
static inline void hid_scoped(hid_t *id)
{
	if (*id >= 0)
		H5Idec_ref(*id);
}

/* Fills the error with the write that failed, if any, and what to do; else with `what` and HDF5's reason. */
int smalti_h5_file_fail(const struct smalti_h5_file *file, const char *what, struct smalti_error *error);
/* Append bytes of our own to the closed file, also over short writes, and bring all of it to the disk. */
int smalti_h5_write_at(struct smalti_h5_file *file, int64_t offset, const void *data, int64_t bytes,
		       struct smalti_error *error);
int smalti_h5_sync(struct smalti_h5_file *file, struct smalti_error *error);
/* Gives back everything that was taken; may be called after a failure at any point. */
void smalti_h5_free(struct smalti_h5_file *file);

/* The extents of an array with one axis or two; the first is what it has entries along. */
struct smalti_h5_extents {
	int rank;
	hsize_t sizes[2];
};

/* Writes entries `first` and following of a dataset, in its own type. */
int smalti_h5_write(hid_t dataset, int64_t first, const struct smalti_h5_extents *extents,
		    const void *entries);

/* Write attributes of an object: a text (UTF-8, fixed length), texts, or one number. */
int smalti_h5_text(hid_t object, const char *name, const char *text);
int smalti_h5_texts(hid_t object, const char *name, const char *const *texts, int count);
int smalti_h5_int(hid_t object, const char *name, int64_t value);
int smalti_h5_double(hid_t object, const char *name, double value);
/* Returns the type of UTF-8 texts of that length, padded with NULs; H5Tclose() ends it. */
hid_t smalti_h5_text_type(int64_t bytes);

/* Lets HDF5 write to the file's descriptor through us (h5.h says why). */
int smalti_h5_set_driver(hid_t access, struct smalti_h5_file *file);
