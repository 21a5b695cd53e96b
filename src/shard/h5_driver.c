/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "shard/h5.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

/* An open of HDF5's, which makes two of one file. */
struct opened {
	H5FD_t base; /* HDF5's own part: first */
	struct smalti_h5_file *file;
	haddr_t end_of_addresses, end_of_file;
};

struct info {
	struct smalti_h5_file *file;
};

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t limit)
{
	(void)name, (void)flags, (void)limit;
	const struct info *info = H5Pget_driver_info(access);
	struct opened *opened = info ? calloc(1, sizeof(*opened)) : NULL;
	if (opened)
		opened->file = info->file;
	return (H5FD_t *)opened;
}

static herr_t driver_close(H5FD_t *base)
{
	free(base);
	return 0;
}

static herr_t driver_query(const H5FD_t *base, unsigned long *flags)
{
	(void)base;
	*flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
		 H5FD_FEAT_AGGREGATE_SMALLDATA;
	return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *base, H5FD_mem_t type)
{
	(void)type;
	return ((const struct opened *)base)->end_of_addresses;
}

static herr_t driver_set_eoa(H5FD_t *base, H5FD_mem_t type, haddr_t address)
{
	(void)type;
	((struct opened *)base)->end_of_addresses = address;
	return 0;
}

static haddr_t driver_get_eof(const H5FD_t *base, H5FD_mem_t type)
{
	(void)type;
	return ((const struct opened *)base)->end_of_file;
}

/* Reads bytes; what lies behind the end is zero. */
static herr_t driver_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes,
			  void *buffer)
{
	(void)type, (void)transfer;
	struct smalti_h5_file *file = ((struct opened *)base)->file;
	const int64_t got = smalti_read_at(file->fd, buffer, (int64_t)bytes, (int64_t)address);
	if (got < 0 && !file->failure)
		file->failure = errno;
	const size_t there = got < 0 ? 0 : (size_t)got;
	memset((char *)buffer + there, 0, bytes - there);
	return 0;
}

static herr_t driver_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes,
			   const void *buffer)
{
	(void)type, (void)transfer;
	struct opened *opened = (struct opened *)base;
	struct smalti_h5_file *file = opened->file;
	if (!file->failure && smalti_write_at(file->fd, buffer, (int64_t)bytes, (int64_t)address) < 0)
		file->failure = errno;
	smalti_rate_add(file->rate, (int64_t)bytes);
	if (address + bytes > opened->end_of_file)
		opened->end_of_file = address + bytes;
	return 0;
}

static herr_t driver_truncate(H5FD_t *base, hid_t transfer, hbool_t closing)
{
	(void)transfer, (void)closing;
	struct opened *opened = (struct opened *)base;
	struct smalti_h5_file *file = opened->file;
	if (opened->end_of_file == opened->end_of_addresses)
		return 0;
	if (!file->failure && ftruncate(file->fd, (off_t)opened->end_of_addresses) < 0)
		file->failure = errno;
	opened->end_of_file = opened->end_of_addresses;
	return 0;
}

static const H5FD_class_t class = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = 511, /* of those left to everyone's own drivers */
#endif
    .name = "smalti",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(struct info),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

int smalti_h5_set_driver(hid_t access, struct smalti_h5_file *file)
{
	static hid_t driver = H5I_INVALID_HID;
	if (H5Iget_type(driver) != H5I_VFL)
		driver = H5FDregister(&class);
	const struct info info = {file};
	return driver >= 0 && H5Pset_driver(access, driver, &info) >= 0 ? 0 : -1;
}
