/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "shard/index.h"

/* After so many bytes were read, the pages of the mapping are given back; then the system keeps them or
 * not. */
enum { RESIDENT_BYTES = 8 << 20 };

struct smalti_shard {
	char *path;
	struct smalti_map map;
	int64_t read_bytes; /* since pages of it were given back */
	struct smalti_shard_index index;
	struct smalti_shard_info info;
	struct smalti_shard_values values[SMALTI_SHARD_ARRAYS];
	char *texts[SMALTI_SHARD_TEXTS]; /* the last entry that was read of each of smalti_shard_texts[] */
};

int smalti_shard_check(const struct smalti_shard *shard, struct smalti_error *error)
{
	return smalti_map_is_lost(&shard->map) ? smalti_map_check(&shard->map, error) : 0;
}

/* Reads the index. If the file has changed since it was opened, the error says that instead of what checksums
 * find. */
static int read_index(struct smalti_shard *shard, bool unchecked, struct smalti_error *error)
{
	if (smalti_shard_index_read(&shard->index, shard->map.data, shard->map.size, unchecked, error) == 0)
		return smalti_shard_check(shard, error);
	smalti_error_prefix(error, "%s", shard->path);
	smalti_map_check(&shard->map, error);
	return -1;
}

static int open_file(struct smalti_shard *shard, const char *path, bool unchecked, struct smalti_error *error)
{
	shard->path = smalti_format(error, "%s", path);
	if (!shard->path || smalti_map_open(&shard->map, path, error) < 0 ||
	    read_index(shard, unchecked, error) < 0)
		return -1;
	const struct smalti_shard_head *head = &shard->index.head;
	shard->info =
	    (struct smalti_shard_info){&shard->index.schema, head->first,    head->first + head->rows,
				       shard->map.size,      head->failures, shard->index.seal};
	for (int i = 0; i < SMALTI_SHARD_TEXTS; i++) {
		const int64_t bytes = shard->index.places[smalti_shard_texts[i]].entry_bytes;
		shard->texts[i] = smalti_calloc(bytes + 1, 1, error);
		if (!shard->texts[i])
			return -1;
	}
	return 0;
}

static struct smalti_shard *open_shard(const char *path, bool unchecked, struct smalti_error *error)
{
	struct smalti_shard *shard = smalti_calloc(1, sizeof(*shard), error);
	if (shard && open_file(shard, path, unchecked, error) == 0)
		return shard;
	smalti_shard_close(shard);
	return NULL;
}

struct smalti_shard *smalti_shard_open(const char *path, struct smalti_error *error)
{
	return open_shard(path, false, error);
}

struct smalti_shard *smalti_shard_open_unchecked(const char *path, struct smalti_error *error)
{
	return open_shard(path, true, error);
}

void smalti_shard_close(struct smalti_shard *shard)
{
	if (!shard)
		return;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		smalti_shard_values_free(&shard->values[array]);
	for (int i = 0; i < SMALTI_SHARD_TEXTS; i++)
		free(shard->texts[i]);
	smalti_shard_index_free(&shard->index);
	smalti_map_close(&shard->map);
	free(shard->path);
	free(shard);
}

const struct smalti_shard_info *smalti_shard_info(const struct smalti_shard *shard)
{
	return &shard->info;
}

const struct smalti_shard_index *smalti_shard_index(const struct smalti_shard *shard)
{
	return &shard->index;
}

/* Returns entry i of an array that is in one piece. */
static const char *entry(const struct smalti_shard *shard, int array, int64_t i)
{
	const struct smalti_shard_place *place = &shard->index.places[array];
	return (const char *)shard->map.data + place->pieces[0].offset + i * place->entry_bytes;
}

const void *smalti_shard_entries(const struct smalti_shard *shard, int array)
{
	return shard->index.places[array].count ? entry(shard, array, 0) : NULL;
}

static uint64_t entry_u64(const struct smalti_shard *shard, int array, int64_t i)
{
	uint64_t value;
	memcpy(&value, entry(shard, array, i), sizeof(value));
	return value;
}

static uint32_t entry_u32(const struct smalti_shard *shard, int array, int64_t i, int column)
{
	uint32_t value;
	memcpy(&value, entry(shard, array, i) + column * (int)sizeof(value), sizeof(value));
	return value;
}

static const char *entry_text(const struct smalti_shard *shard, int array, int64_t i)
{
	char *text = shard->texts[array == SMALTI_ITEM_KEY ? 0 : array - SMALTI_FAILURE_KEY + 1];
	return memcpy(text, entry(shard, array, i), (size_t)shard->index.places[array].entry_bytes);
}

static void give_back_pages(struct smalti_shard *shard, int64_t bytes)
{
	shard->read_bytes += bytes;
	if (shard->read_bytes < RESIDENT_BYTES)
		return;
	smalti_map_drop(shard->map.data, shard->map.size);
	shard->read_bytes = 0;
}

/* Tells whether the shard has entries start … start + count − 1. */
static int check_entries(const struct smalti_shard *shard, int array, uint64_t start, int64_t count,
			 struct smalti_error *error)
{
	const struct smalti_shard_place *place = &shard->index.places[array];
	if (count > place->count || start > (uint64_t)(place->count - count))
		return smalti_fail(error, SMALTI_ECORRUPT, "its values lie outside of the shard's");
	return 0;
}

/* Returns such entries, which are checked; NULL without an error: none. */
static const void *entries(struct smalti_shard *shard, int array, uint64_t start, int64_t count,
			   struct smalti_error *error)
{
	if (count == 0)
		return NULL;
	give_back_pages(shard, count * shard->index.places[array].entry_bytes);
	return smalti_shard_values_get(&shard->values[array], &shard->index, array, shard->map.data,
				       (int64_t)start, count, error);
}

static uint64_t text_start(const struct smalti_shard *shard, int caption, int64_t i)
{
	return entry_u64(shard, smalti_shard_text_array(caption, SMALTI_TEXT_START), i);
}

static int read_text_head(const struct smalti_shard *shard, int caption, int64_t i,
			  struct smalti_features_text *text, struct smalti_error *error)
{
	const uint64_t start = text_start(shard, caption, i);
	text->tokens = entry_u32(shard, smalti_shard_text_array(caption, SMALTI_TEXT_COUNT), i, 0);
	if (check_entries(shard, smalti_shard_text_array(caption, SMALTI_TEXT_IDS), start, text->tokens,
			  error) < 0)
		return -1;
	return check_entries(shard, smalti_shard_text_array(caption, SMALTI_TEXT_VALUES), start, text->tokens,
			     error);
}

static int read_text(struct smalti_shard *shard, int caption, int64_t i, struct smalti_features_text *text,
		     struct smalti_error *error)
{
	const uint64_t start = text_start(shard, caption, i);
	if (text->tokens == 0)
		return 0;
	text->ids =
	    entries(shard, smalti_shard_text_array(caption, SMALTI_TEXT_IDS), start, text->tokens, error);
	if (text->ids)
		text->values = entries(shard, smalti_shard_text_array(caption, SMALTI_TEXT_VALUES), start,
				       text->tokens, error);
	return text->ids && text->values ? 0 : -1;
}

/* Counts an image's latents. */
static int count_values(const struct smalti_shard *shard, const struct smalti_features_image *image,
			int64_t *values, struct smalti_error *error)
{
	const struct smalti_shard_schema *schema = &shard->index.schema;
	if (!smalti_shard_image_bytes(schema, image, values))
		return smalti_fail(error, SMALTI_ECORRUPT, "its latents are impossibly large");
	*values /= smalti_dtype_bytes(schema->dtype);
	return 0;
}

static int read_image_head(const struct smalti_shard *shard, int64_t i, struct smalti_features_image *image,
			   struct smalti_error *error)
{
	int64_t values;
	image->height = entry_u32(shard, SMALTI_IMAGE_SIZE, i, 0);
	image->width = entry_u32(shard, SMALTI_IMAGE_SIZE, i, 1);
	image->latent_height = entry_u32(shard, SMALTI_IMAGE_SHAPE, i, 0);
	image->latent_width = entry_u32(shard, SMALTI_IMAGE_SHAPE, i, 1);
	memcpy(&image->ratio, entry(shard, SMALTI_IMAGE_RATIO, i), sizeof(image->ratio));
	return count_values(shard, image, &values, error) < 0
		   ? -1
		   : check_entries(shard, SMALTI_IMAGE_VALUES, entry_u64(shard, SMALTI_IMAGE_START, i),
				   values, error);
}

static int read_image(struct smalti_shard *shard, int64_t i, struct smalti_features_image *image,
		      struct smalti_error *error)
{
	int64_t values;
	if (count_values(shard, image, &values, error) < 0)
		return -1;
	image->values =
	    entries(shard, SMALTI_IMAGE_VALUES, entry_u64(shard, SMALTI_IMAGE_START, i), values, error);
	return image->values || values == 0 ? 0 : -1;
}

static int read_head(struct smalti_shard *shard, int64_t i, struct smalti_features_row *row,
		     struct smalti_error *error)
{
	const struct smalti_shard_schema *schema = &shard->index.schema;
	*row = (struct smalti_features_row){
	    .index = shard->index.head.first + i,
	    .key = entry_text(shard, SMALTI_ITEM_KEY, i),
	};
	if (entry_u64(shard, SMALTI_ITEM_INDEX, i) != (uint64_t)row->index)
		return smalti_fail(error, SMALTI_ECORRUPT, "its index is another");
	for (int caption = 0; caption < schema->caption_count; caption++)
		if (read_text_head(shard, caption, i, &row->texts[caption], error) < 0)
			return -1;
	return schema->latent_channels > 0 ? read_image_head(shard, i, &row->image, error) : 0;
}

static int read_row(struct smalti_shard *shard, int64_t i, struct smalti_features_row *row,
		    struct smalti_error *error)
{
	const struct smalti_shard_schema *schema = &shard->index.schema;
	if (read_head(shard, i, row, error) < 0)
		return -1;
	for (int caption = 0; caption < schema->caption_count; caption++)
		if (read_text(shard, caption, i, &row->texts[caption], error) < 0)
			return -1;
	if (schema->latent_channels > 0 && read_image(shard, i, &row->image, error) < 0)
		return -1;
	uint64_t checksum;
	if (smalti_shard_checksum(schema, row, &checksum, error) < 0)
		return -1;
	if (checksum != entry_u64(shard, SMALTI_ITEM_XXH3, i))
		return smalti_fail(error, SMALTI_ECORRUPT, "its checksum is another");
	return 0;
}

/* Reads a row in one of the ways above. */
static int read_by(int (*read)(struct smalti_shard *shard, int64_t i, struct smalti_features_row *row,
			       struct smalti_error *error),
		   struct smalti_shard *shard, int64_t index, struct smalti_features_row *row,
		   struct smalti_error *error)
{
	if (index < shard->info.first || index >= shard->info.end)
		return smalti_fail(error, SMALTI_EINVAL, "%s: has no row %" PRId64, shard->path, index);
	struct smalti_error cause = SMALTI_NO_ERROR;
	const int status = read(shard, index - shard->info.first, row, &cause);
	if (status == 0 && !smalti_map_is_lost(&shard->map))
		return 0;
	if (smalti_map_check(&shard->map, &cause) < 0)
		return smalti_fail(error, cause.code, "row %" PRId64 ": %.900s", index, cause.message);
	return smalti_fail(error, cause.code, "%s: row %" PRId64 " (%.200s): %.500s", shard->path, index,
			   row->key, cause.message);
}

int smalti_shard_row(struct smalti_shard *shard, int64_t index, struct smalti_features_row *row,
		     struct smalti_error *error)
{
	return read_by(read_row, shard, index, row, error);
}

int smalti_shard_row_head(struct smalti_shard *shard, int64_t index, struct smalti_features_row *row,
			  struct smalti_error *error)
{
	return read_by(read_head, shard, index, row, error);
}

bool smalti_shard_row_is_complete(const struct smalti_shard *shard, int64_t index)
{
	const struct smalti_shard_schema *schema = &shard->index.schema;
	const int64_t i = index - shard->index.head.first;
	for (int caption = 0; caption < schema->caption_count; caption++)
		if (entry_u32(shard, smalti_shard_text_array(caption, SMALTI_TEXT_COUNT), i, 0) == 0)
			return false;
	return schema->latent_channels == 0 || (entry_u32(shard, SMALTI_IMAGE_SHAPE, i, 0) > 0 &&
						entry_u32(shard, SMALTI_IMAGE_SHAPE, i, 1) > 0);
}

struct smalti_shard_extent smalti_shard_row_extent(const struct smalti_shard *shard, int64_t index)
{
	const struct smalti_shard_schema *schema = &shard->index.schema;
	const int64_t i = index - shard->index.head.first;
	struct smalti_shard_extent extent = {0};
	for (int caption = 0; caption < schema->caption_count; caption++) {
		const int64_t tokens =
		    entry_u32(shard, smalti_shard_text_array(caption, SMALTI_TEXT_COUNT), i, 0);
		if (tokens <= schema->max_tokens)
			extent.tokens = smalti_max(extent.tokens, tokens);
	}
	if (schema->latent_channels == 0)
		return extent;
	const int64_t height = entry_u32(shard, SMALTI_IMAGE_SHAPE, i, 0),
		      width = entry_u32(shard, SMALTI_IMAGE_SHAPE, i, 1);
	if (height * width <= schema->image_size * schema->image_size) {
		extent.latent_height = height;
		extent.latent_width = width;
	}
	return extent;
}

int smalti_shard_failure(struct smalti_shard *shard, int64_t number, struct smalti_shard_failure *failure,
			 struct smalti_error *error)
{
	if (number < 0 || number >= shard->info.failures)
		return smalti_fail(error, SMALTI_EINVAL, "%s: has no failure %" PRId64, shard->path, number);
	*failure = (struct smalti_shard_failure){
	    (int64_t)entry_u64(shard, SMALTI_FAILURE_INDEX, number),
	    entry_text(shard, SMALTI_FAILURE_KEY, number),
	    entry_text(shard, SMALTI_FAILURE_STAGE, number),
	    entry_text(shard, SMALTI_FAILURE_REASON, number),
	};
	if (smalti_shard_check(shard, error) < 0)
		return -1;
	if (failure->index < shard->info.first || failure->index >= shard->info.end)
		return smalti_fail(error, SMALTI_ECORRUPT,
				   "%s: a failure of item %" PRId64 ", which is not in it", shard->path,
				   failure->index);
	return 0;
}
