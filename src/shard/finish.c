/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "shard/types.h"
#include "shard/writer.h"

static int write_timing(hid_t root, const struct smalti_shard_timing *timing)
{
	return smalti_h5_double(root, "began", timing->began) ||
	       smalti_h5_double(root, "ended", timing->ended) ||
	       smalti_h5_double(root, "text_seconds", timing->text_seconds) ||
	       smalti_h5_double(root, "picture_seconds", timing->image_seconds) ||
	       smalti_h5_int(root, "tokens", timing->tokens) || smalti_h5_int(root, "pixels", timing->pixels);
}

static int write_attributes(struct smalti_shard_writer *writer, const struct smalti_shard_timing *timing,
			    struct smalti_error *error)
{
	const hid_t root = writer->file.id;
	if (smalti_shard_write_schema(root, &writer->schema, "smalti features shard") ||
	    smalti_h5_int(root, "first", writer->first) ||
	    smalti_h5_int(root, "end", writer->first + writer->rows) || write_timing(root, timing))
		return smalti_h5_file_fail(&writer->file, "attributes cannot be written", error);
	return 0;
}

static int make_index(const struct smalti_shard_writer *writer, struct smalti_shard_index *index,
		      struct smalti_error *error)
{
	struct smalti_shard_head head = {
	    .first = writer->first,
	    .rows = writer->rows,
	    .failures = writer->arrays[SMALTI_FAILURE_INDEX].count,
	    .image_values = smalti_array_count(writer, SMALTI_IMAGE_VALUES),
	};
	for (int i = 0; i < writer->schema.caption_count; i++)
		head.tokens[i] = smalti_array_count(writer, smalti_shard_text_array(i, SMALTI_TEXT_IDS));
	for (int i = 0; i < SMALTI_SHARD_TEXTS; i++) {
		const int64_t longest = writer->arrays[smalti_shard_texts[i]].longest;
		head.text_bytes[i] = longest ? longest : 1;
	}
	return smalti_shard_index_make(index, &head, &writer->schema, error);
}

/* Writes all that goes through HDF5. */
static int complete(struct smalti_shard_writer *writer, const struct smalti_shard_timing *timing,
		    struct smalti_shard_index *index, struct smalti_error *error)
{
	int status = make_index(writer, index, error);
	for (int array = 0; array < SMALTI_SHARD_ARRAYS && status == 0; array++)
		if (smalti_shard_has(&writer->schema, array))
			status = smalti_array_finish(writer, array, &index->places[array], error);
	if (status == 0)
		status = write_attributes(writer, timing, error);
	return status == 0 ? smalti_h5_close(&writer->file, error) : -1;
}

static int append_index(struct smalti_shard_writer *writer, struct smalti_shard_index *index,
			struct smalti_error *error)
{
	struct smalti_map map;
	char line[SMALTI_SHARD_TRAILER + 1];
	if (smalti_map_open(&map, writer->path, error) < 0)
		return -1;
	const int64_t end = map.size;
	int status = smalti_shard_index_seal(index, map.data, end, line, error);
	if (smalti_map_is_lost(&map))
		status = smalti_map_check(&map, error);
	smalti_map_close(&map);
	return status || smalti_h5_write_at(&writer->file, end, index->bytes, index->length, error) ||
		       smalti_h5_write_at(&writer->file, end + index->length, line, SMALTI_SHARD_TRAILER,
					  error) ||
		       smalti_h5_sync(&writer->file, error)
		   ? -1
		   : 0;
}

static int read_rows(const struct smalti_shard_writer *writer, struct smalti_shard *shard,
		     struct smalti_error *error)
{
	struct smalti_features_row row;
	int status = 0;
	if (smalti_shard_info(shard)->first != writer->first ||
	    smalti_shard_info(shard)->end != writer->first + writer->rows)
		status = smalti_fail(error, SMALTI_ECORRUPT, "%s: reads back with other rows", writer->path);
	for (int64_t i = 0; i < writer->rows && status == 0; i++)
		status = smalti_shard_row(shard, writer->first + i, &row, error);
	return status;
}

static struct smalti_shard *read_back(const struct smalti_shard_writer *writer, struct smalti_error *error)
{
	struct smalti_shard *shard = smalti_shard_open(writer->path, error);
	if (!shard || read_rows(writer, shard, error) == 0)
		return shard;
	smalti_shard_close(shard);
	return NULL;
}

struct smalti_shard *smalti_shard_finish(struct smalti_shard_writer *writer,
					 const struct smalti_shard_timing *timing, struct smalti_error *error)
{
	struct smalti_shard_index index = {.length = 0};
	int status = writer->failed
			 ? smalti_fail(error, SMALTI_EINVAL, "%s: could not be written before", writer->path)
			 : 0;
	smalti_h5_enter();
	if (status == 0)
		status = complete(writer, timing, &index, error);
	smalti_h5_leave();
	if (status == 0)
		status = append_index(writer, &index, error);
	smalti_shard_index_free(&index);
	struct smalti_shard *shard = status == 0 ? read_back(writer, error) : NULL;
	smalti_shard_discard(writer);
	return shard;
}
