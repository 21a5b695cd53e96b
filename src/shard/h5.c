/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/h5.h"
#include "base/file.h"

#include <fcntl.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static H5E_auto2_t users_words; /* how the program wanted HDF5 to complain */
static void *users_data;

void smalti_h5_enter(void)
{
	pthread_mutex_lock(&mutex);
	H5Eget_auto2(H5E_DEFAULT, &users_words, &users_data);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void smalti_h5_leave(void)
{
	H5Eset_auto2(H5E_DEFAULT, users_words, users_data);
	pthread_mutex_unlock(&mutex);
}

struct words {
	char text[256];
};

static herr_t deepest(unsigned number, const H5E_error2_t *entry, void *user)
{
	struct words *words = user;
	if (number == 0 && entry->desc)
		strncpy(words->text, entry->desc, sizeof(words->text) - 1);
	return 0;
}

static int fail_h5(struct smalti_error *error, const char *path, const char *what)
{
	struct words words = {"no reason given"};
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, deepest, &words);
	return smalti_fail(error, SMALTI_EIO, "%s: %s: HDF5 says: %s", path, what, words.text);
}

/* Lets rows and arrays begin at multiples of a cache line; HDF5 1.10 and later read the files. */
static hid_t access_properties(struct smalti_h5_file *file)
{
	enum { ALIGNMENT = 64 };
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);
	if (access >= 0 && H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0 &&
	    H5Pset_alignment(access, 1, ALIGNMENT) >= 0 &&
	    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 && smalti_h5_set_driver(access, file) == 0)
		return access;
	if (access >= 0)
		H5Pclose(access);
	return H5I_INVALID_HID;
}

int smalti_h5_create(struct smalti_h5_file *file, const char *path, struct smalti_error *error)
{
	*file = (struct smalti_h5_file){.path = path,
					.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666),
					.id = H5I_INVALID_HID};
	if (file->fd < 0)
		return smalti_fail_errno(error, "%s: cannot be created", path);
	SCOPED(hid) hid_t access = access_properties(file);
	if (access >= 0)
		file->id = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
	return file->id >= 0 ? 0 : smalti_h5_file_fail(file, "cannot be begun", error);
}

static const char *remedy(int cause)
{
	switch (cause) {
	case ENOSPC:
	case EDQUOT:
		return "; free some space and run the same command again: what is committed stays";
	case EFBIG:
		return "; raise the limit of file sizes, or make smaller shards";
	default:
		return "; check the disk and run the same command again: what is committed stays";
	}
}

static int fail_with(const struct smalti_h5_file *file, int cause, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EIO, "%s: cannot be written: %s%s", file->path, strerror(cause),
			   remedy(cause));
}

int smalti_h5_file_fail(const struct smalti_h5_file *file, const char *what, struct smalti_error *error)
{
	return file->failure ? fail_with(file, file->failure, error) : fail_h5(error, file->path, what);
}

int smalti_h5_close(struct smalti_h5_file *file, struct smalti_error *error)
{
	const hid_t id = file->id;
	file->id = H5I_INVALID_HID;
	const bool closed = id < 0 || H5Fclose(id) >= 0;
	return closed && !file->failure ? 0 : smalti_h5_file_fail(file, "cannot be completed", error);
}

int smalti_h5_write_at(struct smalti_h5_file *file, int64_t offset, const void *data, int64_t bytes,
		       struct smalti_error *error)
{
	const int status = smalti_write_at(file->fd, data, bytes, offset);
	smalti_rate_add(file->rate, bytes);
	return status < 0 ? fail_with(file, errno, error) : 0;
}

int smalti_h5_sync(struct smalti_h5_file *file, struct smalti_error *error)
{
	return fsync(file->fd) < 0 ? fail_with(file, errno, error) : 0;
}

void smalti_h5_free(struct smalti_h5_file *file)
{
	if (file->id >= 0)
		H5Fclose(file->id);
	file->id = H5I_INVALID_HID;
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}
