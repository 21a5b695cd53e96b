/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/types.h"

/* Makes the schema's f16, as IEEE 754 has it; HDF5 1.10 has no name for it. */
static hid_t half_type(void)
{
	hid_t type = H5Tcopy(H5T_IEEE_F32LE);
	if (type < 0 || (H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(type, 2) >= 0 &&
			 H5Tset_ebias(type, 15) >= 0))
		return type;
	H5Tclose(type);
	return H5I_INVALID_HID;
}

static hid_t value_type(enum smalti_dtype dtype)
{
	if (dtype == SMALTI_F16)
		return half_type();
	return H5Tcopy(dtype == SMALTI_F32 ? H5T_IEEE_F32LE : H5T_STD_U16LE);
}

static hid_t array_type(const struct smalti_shard_schema *schema, int array, int64_t text_bytes)
{
	switch (smalti_shard_array_kind(array)->unit) {
	case SMALTI_UNIT_U32:
		return H5Tcopy(H5T_STD_U32LE);
	case SMALTI_UNIT_U64:
		return H5Tcopy(H5T_STD_U64LE);
	case SMALTI_UNIT_I32:
		return H5Tcopy(H5T_STD_I32LE);
	case SMALTI_UNIT_I64:
		return H5Tcopy(H5T_STD_I64LE);
	case SMALTI_UNIT_F64:
		return H5Tcopy(H5T_IEEE_F64LE);
	case SMALTI_UNIT_TEXT:
		return smalti_h5_text_type(text_bytes);
	default:
		return value_type(schema->dtype);
	}
}

struct smalti_h5_extents smalti_shard_extents(const struct smalti_shard_schema *schema, int array,
					      int64_t count)
{
	const int columns = smalti_shard_array_kind(array)->columns;
	return (struct smalti_h5_extents){
	    columns == 1 ? 1 : 2, {(hsize_t)count, (hsize_t)(columns ? columns : schema->text_width)}};
}

hid_t smalti_shard_make_dataset(hid_t file, const struct smalti_shard_schema *schema, int array,
				int64_t text_bytes, int64_t count, bool more, hid_t creation)
{
	const struct smalti_h5_extents extents = smalti_shard_extents(schema, array, count);
	const hsize_t limits[2] = {more ? H5S_UNLIMITED : extents.sizes[0], extents.sizes[1]};
	char path[SMALTI_SHARD_PATH];
	smalti_shard_array_path(schema, array, path);
	hid_t links = H5Pcreate(H5P_LINK_CREATE), access = H5Pcreate(H5P_DATASET_ACCESS);
	hid_t space = H5Screate_simple(extents.rank, extents.sizes, limits);
	hid_t type = array_type(schema, array, text_bytes), dataset = H5I_INVALID_HID;
	if (links >= 0 && access >= 0 && space >= 0 && type >= 0 &&
	    H5Pset_create_intermediate_group(links, 1) >= 0 && H5Pset_chunk_cache(access, 0, 0, 1) >= 0)
		dataset = H5Dcreate2(file, path, type, space, links, creation, access);
	if (dataset >= 0 && smalti_shard_array_kind(array)->unit == SMALTI_UNIT_VALUE &&
	    smalti_h5_text(dataset, "dtype", smalti_dtype_name(schema->dtype)) < 0) {
		H5Dclose(dataset);
		dataset = H5I_INVALID_HID;
	}
	H5Pclose(links), H5Pclose(access), H5Sclose(space), H5Tclose(type);
	return dataset;
}

static int write_captions(hid_t root, const struct smalti_shard_schema *schema)
{
	int status = schema->caption_count
			 ? smalti_h5_texts(root, "captions", schema->captions, schema->caption_count)
			 : 0;
	for (int i = 0; i < schema->caption_count && status == 0; i++) {
		char path[SMALTI_SHARD_PATH];
		smalti_shard_caption_path(schema->captions[i], path);
		SCOPED(hid) hid_t group = H5Gopen2(root, path, H5P_DEFAULT);
		status = group < 0 ? -1 : smalti_h5_text(group, "caption", schema->captions[i]);
	}
	return status;
}

int smalti_shard_write_schema(hid_t root, const struct smalti_shard_schema *schema, const char *format)
{
	return smalti_h5_text(root, "format", format) ||
		       smalti_h5_int(root, "version", SMALTI_SHARD_VERSION) || write_captions(root, schema) ||
		       smalti_h5_text(root, "dtype", smalti_dtype_name(schema->dtype)) ||
		       smalti_h5_int(root, "text_width", schema->text_width) ||
		       smalti_h5_int(root, "max_tokens", schema->max_tokens) ||
		       smalti_h5_int(root, "latent_channels", schema->latent_channels) ||
		       smalti_h5_int(root, "image_size", schema->image_size) ||
		       smalti_h5_double(root, "scaling_factor", schema->scaling_factor) ||
		       smalti_h5_int(root, "compress", schema->compress) ||
		       smalti_h5_text(root, "provenance", schema->provenance)
		   ? -1
		   : 0;
}
