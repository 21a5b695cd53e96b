/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/types.h"
#include "shard/writer.h"

enum { FIRST_CAPACITY = 4096, TEXT_BLOCK = 1 << 20 };

static int grow(struct smalti_array_writer *a, int64_t bytes, struct smalti_error *error)
{
	if (a->capacity - a->used >= bytes)
		return 0;
	int64_t capacity = a->capacity ? a->capacity : FIRST_CAPACITY;
	while (capacity - a->used < bytes)
		if (!smalti_multiply(&capacity, 2))
			return smalti_fail(error, SMALTI_ENOMEM, "a shard of impossible size");
	char *buffer = realloc(a->buffer, (size_t)capacity);
	if (!buffer)
		return smalti_fail(error, SMALTI_ENOMEM, "out of memory for a shard (%lld bytes were wanted)",
				   (long long)capacity);
	a->buffer = buffer;
	a->capacity = capacity;
	return 0;
}

/* Keeps values that fill no chunk in one piece, as all else. */
static hid_t creation_properties(const struct smalti_shard_writer *writer, int array, int64_t chunk)
{
	const struct smalti_h5_extents extents = smalti_shard_extents(&writer->schema, array, chunk);
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
	bool ok = creation >= 0 && H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER) >= 0 &&
		  H5Pset_obj_track_times(creation, false) >= 0;
	if (ok && chunk > 0)
		ok = H5Pset_chunk(creation, extents.rank, extents.sizes) >= 0;
	if (ok && chunk > 0 && writer->schema.compress)
		ok = H5Pset_shuffle(creation) >= 0 && H5Pset_deflate(creation, SMALTI_DEFLATE_LEVEL) >= 0;
	if (ok)
		return creation;
	if (creation >= 0)
		H5Pclose(creation);
	return H5I_INVALID_HID;
}

/* Creates the dataset, of `count` entries; with `more` it can grow. */
static int create_dataset(struct smalti_shard_writer *writer, int array, int64_t count, int64_t chunk,
			  bool more, struct smalti_error *error)
{
	struct smalti_array_writer *a = &writer->arrays[array];
	SCOPED(hid) hid_t creation = creation_properties(writer, array, chunk);
	if (creation >= 0)
		a->dataset = smalti_shard_make_dataset(writer->file.id, &writer->schema, array, a->longest,
						       count, more, creation);
	return a->dataset >= 0 ? 0 : smalti_h5_file_fail(&writer->file, "an array cannot be made", error);
}

/* Writes the entries that wait as one chunk of `chunk` entries, with zeros behind them. */
static int write_compressed(struct smalti_shard_writer *writer, int array, int64_t chunk,
			    struct smalti_error *error)
{
	struct smalti_array_writer *a = &writer->arrays[array];
	const int64_t rest = (chunk - a->count) * a->entry_bytes;
	struct smalti_deflated deflated;
	if (grow(a, rest, error) < 0)
		return -1;
	memset(a->buffer + a->used, 0, (size_t)rest);
	if (smalti_deflate(&writer->deflater, a->buffer, chunk * a->entry_bytes,
			   smalti_dtype_bytes(writer->schema.dtype), &deflated, error) < 0)
		return -1;
	const hsize_t start[2] = {(hsize_t)a->written, 0};
	if (H5Dwrite_chunk(a->dataset, H5P_DEFAULT, deflated.mask, start, (size_t)deflated.bytes,
			   deflated.data) >= 0 &&
	    !writer->file.failure)
		return 0;
	return smalti_h5_file_fail(&writer->file, "an array cannot be written", error);
}

/* Writes entries first … first + count − 1 of the dataset. */
static int write_entries(struct smalti_shard_writer *writer, int array, int64_t first, int64_t count,
			 const void *entries, struct smalti_error *error)
{
	const struct smalti_h5_extents extents = smalti_shard_extents(&writer->schema, array, count);
	if (smalti_h5_write(writer->arrays[array].dataset, first, &extents, entries) == 0 &&
	    !writer->file.failure)
		return 0;
	return smalti_h5_file_fail(&writer->file, "an array cannot be written", error);
}

/* Writes the entries that wait: a chunk, or the rest. */
static int flush_chunk(struct smalti_shard_writer *writer, int array, struct smalti_error *error)
{
	struct smalti_array_writer *a = &writer->arrays[array];
	const struct smalti_h5_extents all =
	    smalti_shard_extents(&writer->schema, array, a->written + a->count);
	if (a->dataset < 0 && create_dataset(writer, array, a->count, a->chunk, true, error) < 0)
		return -1;
	if (H5Dset_extent(a->dataset, all.sizes) < 0)
		return smalti_h5_file_fail(&writer->file, "an array cannot grow", error);
	if ((writer->schema.compress
		 ? write_compressed(writer, array, a->chunk, error)
		 : write_entries(writer, array, a->written, a->count, a->buffer, error)) < 0)
		return -1;
	a->written += a->count;
	a->count = a->used = 0;
	return 0;
}

int64_t smalti_array_count(const struct smalti_shard_writer *writer, int array)
{
	return writer->arrays[array].written + writer->arrays[array].count;
}

int smalti_array_append(struct smalti_shard_writer *writer, int array, const void *entries, int64_t count,
			struct smalti_error *error)
{
	struct smalti_array_writer *a = &writer->arrays[array];
	const char *from = entries;
	while (count > 0) {
		int64_t now = a->chunk && a->chunk - a->count < count ? a->chunk - a->count : count;
		int64_t bytes = now;
		if (!smalti_multiply(&bytes, a->entry_bytes))
			return smalti_fail(error, SMALTI_ENOMEM, "a row of impossible size");
		if (grow(a, bytes, error) < 0)
			return -1;
		memcpy(a->buffer + a->used, from, (size_t)bytes);
		a->used += bytes;
		a->count += now;
		from += bytes;
		count -= now;
		if (a->chunk && a->count == a->chunk && flush_chunk(writer, array, error) < 0)
			return -1;
	}
	return 0;
}

int smalti_array_append_text(struct smalti_shard_writer *writer, int array, const char *text,
			     struct smalti_error *error)
{
	struct smalti_array_writer *a = &writer->arrays[array];
	const int64_t length = (int64_t)strlen(text);
	if (grow(a, length + 1, error) < 0)
		return -1;
	memcpy(a->buffer + a->used, text, (size_t)length + 1);
	a->used += length + 1;
	a->count++;
	a->longest = smalti_max(length, a->longest);
	return 0;
}

/* Writes texts block by block, each padded to the longest. */
static int write_texts(struct smalti_shard_writer *writer, int array, struct smalti_error *error)
{
	struct smalti_array_writer *a = &writer->arrays[array];
	const int64_t room = a->longest < TEXT_BLOCK ? TEXT_BLOCK / a->longest : 1;
	SCOPED(free) char *block = smalti_calloc(room, a->longest, error);
	const char *text = a->buffer;
	int status = block ? 0 : -1;
	for (int64_t first = 0; first < a->count && status == 0; first += room) {
		const int64_t count = smalti_min(a->count - first, room);
		memset(block, 0, (size_t)(count * a->longest));
		for (int64_t i = 0; i < count; i++) {
			const size_t length = strnlen(text, (size_t)a->longest);
			memcpy(block + i * a->longest, text, length);
			text += length + 1;
		}
		status = write_entries(writer, array, first, count, block, error);
	}
	return status;
}

/* Finds an array in one piece, or its chunks. */
static int locate(hid_t dataset, struct smalti_shard_place *place)
{
	const haddr_t whole = H5Dget_offset(dataset);
	for (int64_t i = 0; i < place->piece_count; i++) {
		const hsize_t start[2] = {(hsize_t)(i * place->chunk), 0};
		haddr_t address = whole;
		hsize_t bytes = (hsize_t)place->chunk * (hsize_t)place->entry_bytes;
		unsigned mask;
		if (whole == HADDR_UNDEF &&
		    H5Dget_chunk_info_by_coord(dataset, start, &mask, &address, &bytes) < 0)
			return -1;
		if (address == HADDR_UNDEF)
			return -1;
		place->pieces[i] = (struct smalti_shard_piece){(int64_t)address, (int64_t)bytes, 0};
	}
	return 0;
}

int smalti_array_finish(struct smalti_shard_writer *writer, int array, struct smalti_shard_place *place,
			struct smalti_error *error)
{
	struct smalti_array_writer *a = &writer->arrays[array];
	const bool compress = writer->schema.compress && a->chunk;
	const bool texts = smalti_shard_array_kind(array)->unit == SMALTI_UNIT_TEXT;
	int status = 0;
	if (texts && a->longest == 0)
		a->longest = 1;
	if (a->dataset >= 0)
		status = a->count ? flush_chunk(writer, array, error) : 0;
	else
		status = create_dataset(writer, array, a->count, compress ? a->count : 0, false, error);
	if (status == 0 && texts)
		status = write_texts(writer, array, error);
	else if (status == 0 && compress && a->count)
		status = write_compressed(writer, array, a->count, error);
	else if (status == 0 && a->count)
		status = write_entries(writer, array, 0, a->count, a->buffer, error);
	if (status == 0 && locate(a->dataset, place) < 0)
		status = smalti_h5_file_fail(&writer->file, "an array cannot be found again", error);
	if (a->dataset >= 0 && H5Dclose(a->dataset) < 0 && status == 0)
		status = smalti_h5_file_fail(&writer->file, "an array cannot be completed", error);
	a->dataset = H5I_INVALID_HID;
	return status;
}
