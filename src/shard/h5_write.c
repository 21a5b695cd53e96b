/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/h5.h"

int smalti_h5_write(hid_t dataset, int64_t first, const struct smalti_h5_extents *extents,
		    const void *entries)
{
	const hsize_t start[2] = {(hsize_t)first, 0};
	SCOPED(hid) hid_t type = H5Dget_type(dataset);
	SCOPED(hid) hid_t space = H5Dget_space(dataset);
	SCOPED(hid) hid_t memory = H5Screate_simple(extents->rank, extents->sizes, NULL);
	return type >= 0 && space >= 0 && memory >= 0 &&
		       H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extents->sizes, NULL) >= 0 &&
		       H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, entries) >= 0
		   ? 0
		   : -1;
}

hid_t smalti_h5_text_type(int64_t bytes)
{
	hid_t type = H5Tcopy(H5T_C_S1);
	if (type < 0 || (H5Tset_size(type, bytes > 0 ? (size_t)bytes : 1) >= 0 &&
			 H5Tset_cset(type, H5T_CSET_UTF8) >= 0 && H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0))
		return type;
	H5Tclose(type);
	return H5I_INVALID_HID;
}

/* Writes an attribute of `count` elements; 0: one that is no array. */
static int write_attribute(hid_t object, const char *name, hid_t type, int count, const void *data)
{
	const hsize_t extent = (hsize_t)count;
	SCOPED(hid) hid_t space = count ? H5Screate_simple(1, &extent, NULL) : H5Screate(H5S_SCALAR);
	if (space < 0 || type < 0)
		return -1;
	const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	const bool written = attribute >= 0 && H5Awrite(attribute, type, data) >= 0;
	return attribute >= 0 && H5Aclose(attribute) >= 0 && written ? 0 : -1;
}

int smalti_h5_texts(hid_t object, const char *name, const char *const *texts, int count)
{
	size_t longest = 1;
	for (int i = 0; i < count; i++)
		longest = strlen(texts[i]) > longest ? strlen(texts[i]) : longest;
	SCOPED(free) char *packed = smalti_calloc(count, (int64_t)longest, NULL);
	SCOPED(hid) hid_t type = smalti_h5_text_type((int64_t)longest);
	for (int i = 0; packed && i < count; i++)
		memcpy(packed + (size_t)i * longest, texts[i], strlen(texts[i]));
	return packed && type >= 0 ? write_attribute(object, name, type, count, packed) : -1;
}

int smalti_h5_text(hid_t object, const char *name, const char *text)
{
	SCOPED(hid) hid_t type = smalti_h5_text_type((int64_t)strlen(text));
	return write_attribute(object, name, type, 0, text);
}

int smalti_h5_int(hid_t object, const char *name, int64_t value)
{
	return write_attribute(object, name, H5T_STD_I64LE, 0, &value);
}

int smalti_h5_double(hid_t object, const char *name, double value)
{
	return write_attribute(object, name, H5T_IEEE_F64LE, 0, &value);
}
