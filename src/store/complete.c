/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/sealed.h"
#include "store/directory.h"

#include <time.h>

static const char *const outputs[] = {"features.h5", "failed.jsonl", "extract.json"};

static char *manifest_path(const char *directory, struct smalti_error *error)
{
	return smalti_format(error, "%s/manifest.json", directory);
}

void smalti_manifest_remove(const char *directory)
{
	static const char *const names[] = {"manifest.json", "features.h5"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		SCOPED(free) char *path = smalti_format(NULL, "%s/%s", directory, names[i]);
		if (path)
			unlink(path);
	}
}

static int add_digest(cJSON *object, int64_t bytes, uint64_t digest, struct smalti_error *error)
{
	char text[SMALTI_HEX_DIGITS + 1];
	smalti_hex_print(digest, text);
	if (cJSON_AddNumberToObject(object, "bytes", (double)bytes) &&
	    cJSON_AddStringToObject(object, "xxh3", text))
		return 0;
	return smalti_fail(error, SMALTI_ENOMEM, "no memory for the manifest");
}

/* Adds a file with its checksum, unless it is not there. */
static int add_file(cJSON *files, const char *directory, const char *name, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, name);
	uint64_t digest;
	int64_t bytes;
	int status = path ? smalti_find_file(path, error) : -1;
	if (status > 0) {
		status = smalti_file_digest(path, &digest, &bytes, error);
		if (status == 0)
			status = add_digest(cJSON_AddObjectToObject(files, name), bytes, digest, error);
	}
	return status;
}

static int add_shard(cJSON *shards, const struct smalti_shard_entry *entry, struct smalti_error *error)
{
	char name[SMALTI_SHARD_NAME];
	smalti_shard_name(&entry->id, name);
	cJSON *object = cJSON_CreateObject();
	cJSON_AddItemToArray(shards, object);
	cJSON_AddStringToObject(object, "file", name);
	cJSON_AddNumberToObject(object, "first", (double)entry->id.first);
	cJSON_AddNumberToObject(object, "end", (double)entry->id.end);
	cJSON_AddNumberToObject(object, "failures", (double)entry->failures);
	return add_digest(object, entry->bytes, entry->seal, error);
}

static int add_totals(cJSON *manifest, const struct smalti_shards *shards)
{
	const struct smalti_store_totals sums = smalti_shards_totals(shards, 0, INT64_MAX);
	cJSON *totals = cJSON_AddObjectToObject(manifest, "totals");
	return cJSON_AddNumberToObject(totals, "items", (double)sums.items) &&
		       cJSON_AddNumberToObject(totals, "failures", (double)sums.failures) &&
		       cJSON_AddNumberToObject(totals, "shards", (double)sums.shards) &&
		       cJSON_AddNumberToObject(totals, "bytes", (double)sums.bytes)
		   ? 0
		   : -1;
}

static int fill(cJSON *manifest, const char *directory, const struct smalti_shards *shards,
		struct smalti_error *error)
{
	cJSON *identity = smalti_directory_identity(directory, error);
	if (!identity)
		return -1;
	cJSON_AddNumberToObject(manifest, "created", (double)time(NULL));
	cJSON_AddItemToObject(manifest, "identity", identity);
	if (add_totals(manifest, shards))
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for the manifest");
	cJSON *files = cJSON_AddObjectToObject(manifest, "files");
	for (size_t i = 0; i < COUNT_OF(outputs); i++)
		if (add_file(files, directory, outputs[i], error))
			return -1;
	cJSON *list = cJSON_AddArrayToObject(manifest, "shards");
	for (int64_t i = 0; i < shards->count; i++)
		if (add_shard(list, &shards->entries[i], error))
			return -1;
	return 0;
}

static int write_manifest(const char *directory, const struct smalti_shards *shards,
			  struct smalti_error *error)
{
	SCOPED(free) char *path = manifest_path(directory, error);
	SCOPED(cJSON_Delete) cJSON *manifest = cJSON_CreateObject();
	return path && fill(manifest, directory, shards, error) == 0
		   ? smalti_sealed_write(path, manifest, error)
		   : -1;
}

static bool is_of(const cJSON *manifest, const struct smalti_shards *shards)
{
	SCOPED(cJSON_Delete) cJSON *wanted = cJSON_CreateArray();
	int status = wanted ? 0 : -1;
	for (int64_t i = 0; i < shards->count && status == 0; i++)
		status = add_shard(wanted, &shards->entries[i], NULL);
	return status == 0 &&
	       cJSON_Compare(wanted, cJSON_GetObjectItemCaseSensitive(manifest, "shards"), true);
}

bool smalti_manifest_fits(const char *directory, const struct smalti_shards *shards)
{
	SCOPED(free) char *path = manifest_path(directory, NULL);
	SCOPED(cJSON_Delete) cJSON *manifest = path ? smalti_sealed_read(path, NULL) : NULL;
	return manifest && is_of(manifest, shards);
}

int smalti_directory_complete(const char *directory, const struct smalti_shards *shards,
			      struct smalti_error *error)
{
	smalti_manifest_remove(directory);
	if (smalti_failed_rebuild(directory, shards, error) || smalti_join(directory, shards, error))
		return -1;
	return write_manifest(directory, shards, error);
}

/* The lock is held. */
static int complete(struct smalti_store *store, int64_t items, int64_t now, struct smalti_error *error)
{
	if (smalti_store_read(store, error))
		return -1;
	if (!smalti_shards_cover(&store->shards, items) ||
	    smalti_manifest_fits(store->member.directory, &store->shards))
		return 0;
	if (smalti_directory_clean(store->member.directory, &store->shards, store->member.claims, now, NULL,
				   error))
		return -1;
	return smalti_directory_complete(store->member.directory, &store->shards, error);
}

int smalti_store_complete(struct smalti_store *store, int64_t items, struct smalti_error *error)
{
	int64_t now;
	if (smalti_lock_acquire(store->member.lock, &now, error))
		return -1;
	const int status = complete(store, items, now, error);
	smalti_lock_release(store->member.lock);
	return status;
}
