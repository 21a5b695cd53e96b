/* SPDX-License-Identifier: Apache-2.0 */
#include "shards.h"

#include "harness.h"
#include "shard/layout.h"
#include "store/shards.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct smalti_shard_timing made_timing = {1.7e9, 1.7e9 + 60.25, 33.5, 12.25, 12345, 678910};

enum { TEXTS = SMALTI_FEATURES_CAPTIONS_MAX, SLOTS = TEXTS + 1 };
static void *kept[SLOTS], *kept_ids[TEXTS];
static char key[512];

/* Values like those of features, in the schema's type: noise that is the same for the same index and slot. */
static void *fill(enum smalti_dtype dtype, int slot, int64_t index, int64_t bytes)
{
	enum { BLOCK = 256 };
	float block[BLOCK];
	const int64_t size = smalti_dtype_bytes(dtype), count = bytes / size;
	free(kept[slot]);
	char *to = kept[slot] = malloc(bytes > 0 ? (size_t)bytes : 1);
	uint64_t state = (uint64_t)index * 64 + (uint64_t)slot + 1;
	for (int64_t first = 0; first < count; first += BLOCK) {
		const int64_t now = count - first < BLOCK ? count - first : BLOCK;
		for (int64_t i = 0; i < now; i++)
			block[i] = test_random(&state) * test_random(&state);
		smalti_narrow(dtype, block, now, to + first * size);
	}
	return to;
}

static int32_t *fill_ids(int caption, int64_t index, int64_t count)
{
	free(kept_ids[caption]);
	int32_t *ids = kept_ids[caption] = malloc((size_t)(count + 1) * sizeof(*ids));
	for (int64_t i = 0; i < count; i++)
		ids[i] = (int32_t)((index * 31 + i * 7 + caption) % 32128);
	return ids;
}

void make_row(const struct made_rows *rows, int64_t index, struct smalti_features_row *row)
{
	const struct smalti_shard_schema *schema = rows->schema;
	int64_t bytes = 0;
	/* Keys of all lengths, with letters of two bytes. */
	snprintf(key, sizeof(key), "folder/%.*s%" PRId64 ".png", (int)(index % 20) * 2,
		 "äöüäöüäöüäöüäöüäöüäöü", index);
	*row = (struct smalti_features_row){.index = index, .key = key};
	for (int i = 0; i < schema->caption_count; i++) {
		struct smalti_features_text *text = &row->texts[i];
		const bool missing = (index + i) % 5 == 3 || rows->tokens_max == 0;
		text->tokens = missing ? 0 : 1 + (index * 13 + i * 5) % rows->tokens_max;
		smalti_shard_text_bytes(schema, text, &bytes);
		text->ids = fill_ids(i, index, text->tokens);
		text->values = fill(schema->dtype, i, index, bytes);
	}
	if (schema->latent_channels == 0)
		return;
	const bool missing = index % 7 == 2 || rows->latent_max == 0;
	row->image = (struct smalti_features_image){
	    .height = 100 + index,
	    .width = 200 + index * 3 % 50,
	    .ratio = 0.25 + (double)(index % 16) / 7,
	    .latent_height = missing ? 0 : 1 + index * 5 % rows->latent_max,
	    .latent_width = missing ? 0 : 1 + index * 3 % rows->latent_max,
	};
	smalti_shard_image_bytes(schema, &row->image, &bytes);
	row->image.values = fill(schema->dtype, TEXTS, index, bytes);
}

static bool same(const void *a, const void *b, int64_t bytes)
{
	return bytes == 0 || (a && b && memcmp(a, b, (size_t)bytes) == 0);
}

static bool same_image(const struct smalti_shard_schema *schema, const struct smalti_features_image *a,
		       const struct smalti_features_image *b)
{
	int64_t bytes = 0;
	smalti_shard_image_bytes(schema, a, &bytes);
	return a->height == b->height && a->width == b->width && a->ratio == b->ratio &&
	       a->latent_height == b->latent_height && a->latent_width == b->latent_width &&
	       same(a->values, b->values, bytes);
}

bool is_made_row(const struct made_rows *rows, int64_t index, const struct smalti_features_row *row)
{
	const struct smalti_shard_schema *schema = rows->schema;
	struct smalti_features_row made;
	make_row(rows, index, &made);
	bool ok = row->index == index && strcmp(row->key, made.key) == 0;
	for (int i = 0; i < schema->caption_count; i++) {
		const struct smalti_features_text *a = &made.texts[i], *b = &row->texts[i];
		int64_t bytes = 0;
		smalti_shard_text_bytes(schema, a, &bytes);
		ok = ok && a->tokens == b->tokens && same(a->ids, b->ids, a->tokens * 4) &&
		     same(a->values, b->values, bytes);
	}
	return ok && (schema->latent_channels == 0 || same_image(schema, &made.image, &row->image));
}

int made_failures(int64_t index)
{
	return index % 11 == 4;
}

static int write_failure(struct smalti_shard_writer *writer, int64_t index, struct smalti_error *error)
{
	char reason[64];
	snprintf(reason, sizeof(reason), "tried it %" PRId64 " times", index);
	const struct smalti_shard_failure failure = {index, key, "vae", reason};
	return smalti_shard_fail(writer, &failure, error);
}

static int write_rows(struct smalti_shard_writer *writer, const struct made_rows *rows, int64_t first,
		      int64_t stop, struct smalti_error *error)
{
	int status = 0;
	for (int64_t i = first; i < stop && status == 0; i++) {
		struct smalti_features_row row;
		make_row(rows, i, &row);
		status = smalti_shard_append(writer, &row, error);
		if (status == 0 && made_failures(i))
			status = write_failure(writer, i, error);
	}
	return status;
}

int write_shard(const char *path, const struct made_rows *rows, int64_t first, int64_t end, int64_t stop,
		struct smalti_error *error)
{
	struct smalti_shard_writer *writer = smalti_shard_create(path, rows->schema, first, end, error);
	if (!writer)
		return -1;
	if (write_rows(writer, rows, first, stop, error) < 0) {
		smalti_shard_discard(writer);
		return -1;
	}
	struct smalti_shard *shard = smalti_shard_finish(writer, &made_timing, error);
	smalti_shard_close(shard);
	return shard ? 0 : -1;
}

static int write_range(struct smalti_store *store, const struct made_rows *rows,
		       const struct smalti_range *range, struct smalti_error *error)
{
	struct smalti_shard_writer *writer = smalti_store_begin(store, range, rows->schema, error);
	bool lost = false;
	if (!writer)
		return -1;
	if (write_rows(writer, rows, range->first, range->end, error) == 0)
		return smalti_store_commit(store, range, writer, &made_timing, &lost, error);
	smalti_store_abandon(store, range, writer);
	return -1;
}

int write_directory(const char *directory, const struct made_rows *rows, int64_t items, int64_t each,
		    struct smalti_error *error)
{
	const struct smalti_range all = {0, items};
	struct smalti_range range;
	char holder[256];
	cJSON *identity = cJSON_CreateObject();
	cJSON_AddStringToObject(identity, "made", "by a formula");
	const struct smalti_store_options options = {.identity = identity};
	struct smalti_store *store = smalti_store_open(directory, &options, error);
	int status = store ? 0 : -1;
	while (status == 0 &&
	       smalti_store_claim(store, &all, each, &range, NULL, holder, error) == SMALTI_CLAIM_TAKEN)
		status = write_range(store, rows, &range, error);
	if (status == 0)
		status = smalti_store_complete(store, items, error);
	smalti_store_close(store);
	cJSON_Delete(identity);
	return status;
}

const char *shard_path(const char *directory, int64_t first, int64_t end)
{
	static char path[512];
	char name[SMALTI_SHARD_NAME];
	const struct smalti_shard_id id = {first, end, 0};
	smalti_shard_name(&id, name);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}
