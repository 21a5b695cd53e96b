/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "shard/index.h"
#include "shard/types.h"
#include "store/directory.h"

/* The entries of each array of a shard that was looked at. */
struct counts {
	int64_t of[SMALTI_SHARD_ARRAYS];
};

struct join {
	const char *directory;
	const struct smalti_shards *shards;
	struct smalti_h5_file file;
	const struct smalti_shard_schema *schema;
	struct counts *counts; /* of each shard */
	struct counts total;   /* of those that were looked at */
	int64_t text_bytes[SMALTI_SHARD_ARRAYS];
	hid_t starts[SMALTI_SHARD_ARRAYS]; /* of what begins where: written while shards are looked at */
};

static bool is_start(int array)
{
	return array == SMALTI_IMAGE_START ||
	       (array >= SMALTI_TEXT_START && smalti_shard_array_kind(array)->unit == SMALTI_UNIT_I64);
}

/* Returns the array whose entries a start counts. */
static int values_of(int start)
{
	return start == SMALTI_IMAGE_START ? SMALTI_IMAGE_VALUES
					   : start + SMALTI_TEXT_VALUES - SMALTI_TEXT_START;
}

static hid_t make_dataset(const struct join *join, int array, hid_t creation, int64_t count)
{
	return smalti_shard_make_dataset(join->file.id, join->schema, array, join->text_bytes[array], count,
					 false, creation);
}

static int make_starts(struct join *join, struct smalti_error *error)
{
	const int64_t rows = smalti_shards_totals(join->shards, 0, INT64_MAX).items;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++) {
		if (!is_start(array) || !smalti_shard_has(join->schema, array))
			continue;
		join->starts[array] = make_dataset(join, array, H5P_DEFAULT, rows);
		if (join->starts[array] < 0)
			return smalti_h5_file_fail(&join->file, "an array cannot be made", error);
	}
	return 0;
}

/* Writes where the shard's rows begin among all. */
static int write_starts(struct join *join, const struct smalti_shard *shard, int array,
			struct smalti_error *error)
{
	const int64_t count = smalti_shard_index(shard)->head.rows;
	const void *own = smalti_shard_entries(shard, array);
	SCOPED(free) uint64_t *starts = own ? smalti_calloc(count, sizeof(*starts), error) : NULL;
	if (!starts)
		return own ? -1 : 0;
	memcpy(starts, own, (size_t)count * sizeof(*starts));
	for (int64_t i = 0; i < count; i++)
		starts[i] += (uint64_t)join->total.of[values_of(array)];
	const struct smalti_h5_extents extents = smalti_shard_extents(join->schema, array, count);
	const int status = smalti_h5_write(join->starts[array], join->total.of[array], &extents, starts);
	return status < 0 ? smalti_h5_file_fail(&join->file, "an array cannot be written", error) : 0;
}

static int look_at(struct join *join, int64_t number, const struct smalti_shard *shard,
		   struct smalti_error *error)
{
	const struct smalti_shard_index *index = smalti_shard_index(shard);
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (is_start(array) && smalti_shard_has(join->schema, array) &&
		    write_starts(join, shard, array, error) < 0)
			return -1;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++) {
		const struct smalti_shard_place *place = &index->places[array];
		join->counts[number].of[array] = place->count;
		join->total.of[array] += place->count;
		join->text_bytes[array] = smalti_max(join->text_bytes[array], place->entry_bytes);
	}
	return 0;
}

static struct smalti_shard *open_shard(const struct join *join, int64_t number, struct smalti_error *error)
{
	SCOPED(free)
	char *path = smalti_shard_path(join->directory, &join->shards->entries[number].id, error);
	return path ? smalti_shard_open(path, error) : NULL;
}

static int look_at_all(struct join *join, struct smalti_error *error)
{
	int status = 0;
	for (int64_t i = 0; i < join->shards->count && status == 0; i++) {
		SCOPED(smalti_shard_close) struct smalti_shard *shard = open_shard(join, i, error);
		status = shard ? look_at(join, i, shard, error) : -1;
		if (status == 0)
			status = smalti_shard_check(shard, error);
	}
	return status;
}

/* Doubles each '%', for HDF5 reads these names as patterns. */
static void double_percents(const char *from, char to[2 * SMALTI_SHARD_PATH])
{
	while (*from) {
		if (*from == '%')
			*to++ = '%';
		*to++ = *from++;
	}
	*to = '\0';
}

/* Says that `count` entries of the dataset, from `at` on, are a shard's. */
static int map_shard(const struct join *join, hid_t creation, hid_t space, int array, int64_t number,
		     int64_t at)
{
	const int64_t count = join->counts[number].of[array];
	const struct smalti_h5_extents extents = smalti_shard_extents(join->schema, array, count);
	const hsize_t start[2] = {(hsize_t)at, 0};
	char path[SMALTI_SHARD_PATH], pattern[2 * SMALTI_SHARD_PATH], name[SMALTI_SHARD_NAME];
	smalti_shard_array_path(join->schema, array, path);
	double_percents(path, pattern);
	smalti_shard_name(&join->shards->entries[number].id, name);
	SCOPED(hid) hid_t source = H5Screate_simple(extents.rank, extents.sizes, NULL);
	return source >= 0 &&
		       H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extents.sizes, NULL) >= 0 &&
		       H5Pset_virtual(creation, space, name, pattern, source) >= 0
		   ? 0
		   : -1;
}

/* Returns the creation properties of an array that is made of the shards' ones; without entries it is
 * empty. */
static hid_t virtual_properties(const struct join *join, int array)
{
	const struct smalti_h5_extents all = smalti_shard_extents(join->schema, array, join->total.of[array]);
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(all.rank, all.sizes, NULL);
	int status = creation >= 0 && space >= 0 ? 0 : -1;
	int64_t at = 0;
	for (int64_t i = 0; i < join->shards->count && status == 0; i++) {
		if (join->counts[i].of[array] > 0)
			status = map_shard(join, creation, space, array, i, at);
		at += join->counts[i].of[array];
	}
	H5Sclose(space);
	if (status == 0)
		return creation;
	H5Pclose(creation);
	return H5I_INVALID_HID;
}

static int make_virtual(const struct join *join, int array)
{
	SCOPED(hid) hid_t creation = virtual_properties(join, array);
	const hid_t dataset = creation >= 0 ? make_dataset(join, array, creation, join->total.of[array]) : -1;
	return dataset >= 0 && H5Dclose(dataset) >= 0 ? 0 : -1;
}

static int fill(struct join *join, struct smalti_error *error)
{
	if (make_starts(join, error) < 0 || look_at_all(join, error) < 0)
		return -1;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (smalti_shard_has(join->schema, array) && !is_start(array) &&
		    make_virtual(join, array) < 0)
			return smalti_h5_file_fail(&join->file, "a virtual array cannot be made", error);
	if (smalti_shard_write_schema(join->file.id, join->schema, "smalti features") ||
	    smalti_h5_int(join->file.id, "first", join->shards->entries[0].id.first) ||
	    smalti_h5_int(join->file.id, "end", join->shards->entries[join->shards->count - 1].id.end))
		return smalti_h5_file_fail(&join->file, "attributes cannot be written", error);
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++) {
		const hid_t starts = join->starts[array];
		join->starts[array] = H5I_INVALID_HID;
		if (starts >= 0 && H5Dclose(starts) < 0)
			return smalti_h5_file_fail(&join->file, "an array cannot be completed", error);
	}
	return smalti_h5_close(&join->file, error) < 0 ? -1 : smalti_h5_sync(&join->file, error);
}

static int write_file(struct join *join, const char *part, const char *path, struct smalti_error *error)
{
	smalti_h5_enter();
	int status = smalti_h5_create(&join->file, part, error);
	if (status == 0)
		status = fill(join, error);
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (join->starts[array] >= 0)
			H5Dclose(join->starts[array]);
	smalti_h5_free(&join->file);
	smalti_h5_leave();
	if (status == 0 && rename(part, path) < 0)
		status = smalti_fail_errno(error, "%s: cannot be renamed", part);
	if (status == 0)
		return smalti_sync_directory(join->directory, error);
	unlink(part);
	return -1;
}

/* All shards have the first one's schema. */
int smalti_join(const char *directory, const struct smalti_shards *shards, struct smalti_error *error)
{
	if (shards->count == 0)
		return 0;
	struct join join = {.directory = directory, .shards = shards, .file = {.fd = -1}};
	join.file.id = H5I_INVALID_HID;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		join.starts[array] = H5I_INVALID_HID;
	SCOPED(smalti_shard_close) struct smalti_shard *model = open_shard(&join, 0, error);
	SCOPED(free)
	struct counts *counts = join.counts = smalti_calloc(shards->count, sizeof(*counts), error);
	SCOPED(free)
	char *part = smalti_format(error, "%s/.features.h5.%ld.part", directory, (long)getpid());
	SCOPED(free) char *path = smalti_format(error, "%s/features.h5", directory);
	if (!model || !counts || !part || !path)
		return -1;
	join.schema = smalti_shard_info(model)->schema;
	return write_file(&join, part, path, error);
}
