/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/writer.h"

static int copy_schema(struct smalti_shard_schema *to, const struct smalti_shard_schema *from,
		       struct smalti_error *error)
{
	*to = *from;
	to->provenance = smalti_format(error, "%s", from->provenance ? from->provenance : "{}");
	for (int i = 0; i < from->caption_count; i++)
		to->captions[i] = NULL;
	for (int i = 0; i < from->caption_count; i++) {
		to->captions[i] = smalti_format(error, "%s", from->captions[i]);
		if (!to->captions[i])
			return -1;
	}
	return to->provenance ? 0 : -1;
}

static void prepare_arrays(struct smalti_shard_writer *writer)
{
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++) {
		struct smalti_array_writer *a = &writer->arrays[array];
		a->dataset = H5I_INVALID_HID;
		if (!smalti_shard_has(&writer->schema, array))
			continue;
		a->entry_bytes = smalti_shard_entry_bytes(&writer->schema, array);
		a->chunk = smalti_shard_chunk(&writer->schema, array);
	}
}

struct smalti_shard_writer *smalti_shard_create(const char *path, const struct smalti_shard_schema *schema,
						int64_t first, int64_t end, struct smalti_error *error)
{
	if (smalti_shard_check_schema(schema, error) < 0)
		return NULL;
	if (first < 0 || end < first) {
		smalti_fail(error, SMALTI_EINVAL, "%s: a shard of the items %" PRId64 " to %" PRId64, path,
			    first, end);
		return NULL;
	}
	struct smalti_shard_writer *writer = smalti_calloc(1, sizeof(*writer), error);
	if (!writer)
		return NULL;
	writer->first = first;
	writer->end = end;
	writer->file.fd = -1;
	writer->file.id = H5I_INVALID_HID;
	writer->path = smalti_format(error, "%s", path);
	int status = writer->path ? copy_schema(&writer->schema, schema, error) : -1;
	prepare_arrays(writer);
	smalti_h5_enter();
	if (status == 0)
		status = smalti_h5_create(&writer->file, writer->path, error);
	smalti_h5_leave();
	if (status == 0)
		return writer;
	smalti_shard_discard(writer);
	return NULL;
}

void smalti_shard_meter(struct smalti_shard_writer *writer, struct smalti_rate *rate)
{
	writer->file.rate = rate;
}

static int check_row(const struct smalti_shard_writer *writer, const struct smalti_features_row *row,
		     struct smalti_error *error)
{
	if (writer->failed)
		return smalti_fail(error, SMALTI_EINVAL, "%s: could not be written before", writer->path);
	if (row->index != writer->first + writer->rows || row->index >= writer->end)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: row %" PRId64 " of %" PRId64 " was expected, found row %" PRId64,
				   writer->path, writer->first + writer->rows, writer->end, row->index);
	bool fits = row->key;
	for (int i = 0; i < writer->schema.caption_count; i++)
		fits = fits && row->texts[i].tokens >= 0 && row->texts[i].tokens <= UINT32_MAX;
	const int64_t sizes[] = {row->image.height, row->image.width, row->image.latent_height,
				 row->image.latent_width};
	for (int i = 0; i < 4; i++)
		fits = fits && sizes[i] >= 0 && sizes[i] <= UINT32_MAX;
	return fits ? 0
		    : smalti_fail(error, SMALTI_EINVAL, "%s: row %" PRId64 " has impossible extents",
				  writer->path, row->index);
}

static int append_text(struct smalti_shard_writer *writer, int caption,
		       const struct smalti_features_text *text, struct smalti_error *error)
{
	const int ids = smalti_shard_text_array(caption, SMALTI_TEXT_IDS);
	const uint64_t start = (uint64_t)smalti_array_count(writer, ids);
	const uint32_t count = (uint32_t)text->tokens;
	return smalti_array_append(writer, smalti_shard_text_array(caption, SMALTI_TEXT_START), &start, 1,
				   error) ||
		       smalti_array_append(writer, smalti_shard_text_array(caption, SMALTI_TEXT_COUNT),
					   &count, 1, error) ||
		       smalti_array_append(writer, ids, text->ids, text->tokens, error) ||
		       smalti_array_append(writer, smalti_shard_text_array(caption, SMALTI_TEXT_VALUES),
					   text->values, text->tokens, error)
		   ? -1
		   : 0;
}

static int append_image(struct smalti_shard_writer *writer, const struct smalti_features_image *image,
			int64_t values, struct smalti_error *error)
{
	const uint64_t start = (uint64_t)smalti_array_count(writer, SMALTI_IMAGE_VALUES);
	const uint32_t shape[2] = {(uint32_t)image->latent_height, (uint32_t)image->latent_width};
	const uint32_t size[2] = {(uint32_t)image->height, (uint32_t)image->width};
	return smalti_array_append(writer, SMALTI_IMAGE_START, &start, 1, error) ||
		       smalti_array_append(writer, SMALTI_IMAGE_SHAPE, shape, 1, error) ||
		       smalti_array_append(writer, SMALTI_IMAGE_SIZE, size, 1, error) ||
		       smalti_array_append(writer, SMALTI_IMAGE_RATIO, &image->ratio, 1, error) ||
		       smalti_array_append(writer, SMALTI_IMAGE_VALUES, image->values, values, error)
		   ? -1
		   : 0;
}

static int append_row(struct smalti_shard_writer *writer, const struct smalti_features_row *row,
		      uint64_t checksum, struct smalti_error *error)
{
	const uint64_t index = (uint64_t)row->index;
	int status = smalti_array_append(writer, SMALTI_ITEM_INDEX, &index, 1, error) ||
			     smalti_array_append_text(writer, SMALTI_ITEM_KEY, row->key, error) ||
			     smalti_array_append(writer, SMALTI_ITEM_XXH3, &checksum, 1, error)
			 ? -1
			 : 0;
	for (int i = 0; i < writer->schema.caption_count && status == 0; i++)
		status = append_text(writer, i, &row->texts[i], error);
	int64_t bytes;
	if (status == 0 && writer->schema.latent_channels > 0 &&
	    smalti_shard_image_bytes(&writer->schema, &row->image, &bytes))
		status = append_image(writer, &row->image, bytes / smalti_dtype_bytes(writer->schema.dtype),
				      error);
	return status;
}

int smalti_shard_append(struct smalti_shard_writer *writer, const struct smalti_features_row *row,
			struct smalti_error *error)
{
	uint64_t checksum;
	if (check_row(writer, row, error) < 0 ||
	    smalti_shard_checksum(&writer->schema, row, &checksum, error) < 0)
		return -1;
	smalti_h5_enter();
	const int status = append_row(writer, row, checksum, error);
	smalti_h5_leave();
	writer->failed = status < 0;
	writer->rows += status == 0;
	return status;
}

int smalti_shard_fail(struct smalti_shard_writer *writer, const struct smalti_shard_failure *failure,
		      struct smalti_error *error)
{
	const uint64_t index = (uint64_t)failure->index;
	if (writer->rows == 0 || failure->index != writer->first + writer->rows - 1)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: a failure of item %" PRId64 ", which is not its last one",
				   writer->path, failure->index);
	writer->failed = smalti_array_append(writer, SMALTI_FAILURE_INDEX, &index, 1, error) ||
			 smalti_array_append_text(writer, SMALTI_FAILURE_KEY, failure->key, error) ||
			 smalti_array_append_text(writer, SMALTI_FAILURE_STAGE, failure->stage, error) ||
			 smalti_array_append_text(writer, SMALTI_FAILURE_REASON, failure->reason, error);
	return writer->failed ? -1 : 0;
}

void smalti_shard_discard(struct smalti_shard_writer *writer)
{
	if (!writer)
		return;
	smalti_h5_enter();
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++) {
		if (writer->arrays[array].dataset >= 0)
			H5Dclose(writer->arrays[array].dataset);
		free(writer->arrays[array].buffer);
	}
	smalti_h5_free(&writer->file);
	smalti_h5_leave();
	smalti_deflater_free(&writer->deflater);
	for (int i = 0; i < writer->schema.caption_count; i++)
		free((void *)writer->schema.captions[i]);
	free((void *)writer->schema.provenance);
	free(writer->path);
	free(writer);
}
