/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "shard/writer.h"

/* The chunks of a dataset. */
static int locate_chunks(hid_t dataset, struct smalti_shard_place *place)
{
	for (int64_t i = 0; i < place->piece_count; i++) {
		const hsize_t start[2] = {(hsize_t)(i * place->chunk), 0};
		unsigned mask;
		haddr_t address;
		hsize_t bytes;
		if (H5Dget_chunk_info_by_coord(dataset, start, &mask, &address, &bytes) < 0 ||
		    address == HADDR_UNDEF)
			return -1;
		place->pieces[i] =
		    (struct smalti_shard_piece){(int64_t)address, (int64_t)bytes, (int64_t)mask, 0};
	}
	return 0;
}

static int locate_whole(hid_t dataset, struct smalti_shard_place *place)
{
	if (place->count == 0)
		return 0;
	const haddr_t address = H5Dget_offset(dataset);
	place->pieces[0] =
	    (struct smalti_shard_piece){(int64_t)address, place->count * place->entry_bytes, 0, 0};
	return address == HADDR_UNDEF ? -1 : 0;
}

/* Entries per chunk; 0: it has none. */
static int64_t chunk_of(hid_t dataset)
{
	hid_t creation = H5Dget_create_plist(dataset);
	hsize_t sizes[2] = {0, 0};
	if (creation >= 0 && H5Pget_layout(creation) == H5D_CHUNKED && H5Pget_chunk(creation, 2, sizes) < 0)
		sizes[0] = 0;
	if (creation >= 0)
		H5Pclose(creation);
	return (int64_t)sizes[0];
}

static int locate_array(const struct smalti_shard_writer *writer, hid_t file, int array,
			struct smalti_shard_place *place, struct smalti_error *error)
{
	const struct smalti_array_writer *written = &writer->arrays[array];
	char path[SMALTI_SHARD_PATH];
	smalti_shard_array_path(&writer->schema, array, path);
	hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT);
	const int64_t chunk = dataset >= 0 ? chunk_of(dataset) : 0;
	place->count = written->written;
	place->entry_bytes = written->entry_bytes ? written->entry_bytes : written->longest;
	place->chunk = chunk ? chunk : place->count;
	place->piece_count = place->count ? (place->count - 1) / place->chunk + 1 : 0;
	place->pieces = smalti_calloc(place->piece_count + 1, sizeof(*place->pieces), error);
	int status = place->pieces ? 0 : -1;
	if (status == 0 &&
	    (dataset < 0 || (chunk ? locate_chunks(dataset, place) : locate_whole(dataset, place)) < 0))
		status = smalti_h5_fail(error, writer->path, "an array cannot be found again");
	if (dataset >= 0)
		H5Dclose(dataset);
	return status;
}

int smalti_shard_locate(struct smalti_shard_writer *writer, struct smalti_shard_index *index,
			struct smalti_error *error)
{
	hid_t file = smalti_h5_open(writer->path, error);
	int status = file >= 0 ? 0 : -1;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS && status == 0; array++)
		if (smalti_shard_has(&writer->schema, array))
			status = locate_array(writer, file, array, &index->places[array], error);
	if (file >= 0)
		H5Fclose(file);
	return status;
}
