/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "store/directory.h"
#include "store/store.h"

int smalti_store_read(struct smalti_store *store, struct smalti_error *error)
{
	const char *directory = store->member.directory;
	HOLD_MUTEX(&store->mutex);
	return smalti_member_refresh(directory, error) ||
		       smalti_shards_read(&store->shards, directory, error) ||
		       smalti_shards_check(&store->shards, directory, error) ||
		       smalti_shards_describe(&store->shards, directory, error)
		   ? -1
		   : 0;
}

/* Returns the identity with another value under a key; NULL with an error. */
static cJSON *with(const cJSON *identity, const char *key, const cJSON *value, struct smalti_error *error)
{
	cJSON *changed = cJSON_Duplicate(identity, true), *copy = cJSON_Duplicate(value, true);
	if (changed && copy && cJSON_ReplaceItemInObjectCaseSensitive(changed, key, copy))
		return changed;
	cJSON_Delete(changed);
	cJSON_Delete(copy);
	smalti_fail(error, SMALTI_ENOMEM, "no memory for the description of a directory");
	return NULL;
}

/* Removes what is made of the whole before it grows: it would pass for that of the new identity. */
static int grow(const char *directory, const cJSON *old, const struct smalti_store_options *options,
		struct smalti_error *error)
{
	SCOPED(cJSON_Delete)
	cJSON *grown = with(old, options->grows,
			    cJSON_GetObjectItemCaseSensitive(options->identity, options->grows), error);
	if (!grown)
		return -1;
	smalti_manifest_remove(directory);
	return smalti_directory_describe(directory, grown, error);
}

/* Compares the identities. A directory that should grow is compared as it was before, so that another
 * difference is named. */
static int compare(const char *directory, const struct smalti_store_options *options,
		   struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *old = smalti_directory_identity(directory, error);
	if (!old)
		return -1;
	const cJSON *was = cJSON_GetObjectItemCaseSensitive(old, options->grows),
		    *now = cJSON_GetObjectItemCaseSensitive(options->identity, options->grows);
	if (!options->before || cJSON_Compare(was, now, true))
		return smalti_identity_compare(directory, old, options->identity, &options->rules, error);
	SCOPED(cJSON_Delete)
	cJSON *begun = with(options->identity, options->grows, options->before, error);
	return begun && smalti_identity_compare(directory, old, begun, &options->rules, error) == 0
		   ? grow(directory, old, options, error)
		   : -1;
}

/* Mends what a crash has left, or what does not say what the shards do. */
static int cleanup(struct smalti_store *store, int64_t now, struct smalti_error *error)
{
	int status = smalti_directory_clean(store->member.directory, &store->shards, store->member.claims,
					    now, NULL, error);
	if (status)
		return -1;
	if (!smalti_manifest_fits(store->member.directory, &store->shards))
		smalti_manifest_remove(store->member.directory);
	if (!smalti_failed_fits(store->member.directory, &store->shards))
		status = smalti_failed_rebuild(store->member.directory, &store->shards, error);
	return status;
}

/* The lock is held. */
static int resume(struct smalti_store *store, const struct smalti_store_options *options, int64_t now,
		  struct smalti_error *error)
{
	const int there = smalti_directory_look(store->member.directory, error);
	if (there < 0 || (there > 0 && compare(store->member.directory, options, error)) ||
	    smalti_directory_prepare(store->member.directory, error) ||
	    (there == 0 && smalti_directory_describe(store->member.directory, options->identity, error)) ||
	    smalti_store_read(store, error))
		return -1;
	return cleanup(store, now, error);
}

static int open_directory(struct smalti_store *store, const char *directory,
			  const struct smalti_store_options *options, struct smalti_error *error)
{
	const struct smalti_lock_wait wait = {options->waiting, options->user, options->lease_seconds};
	int64_t now;
	/* A foreign directory is looked at before there is a lock in it. */
	if (smalti_member_open(&store->member, directory, &wait, smalti_part_remove, error) ||
	    smalti_directory_look(directory, error) < 0 ||
	    smalti_lock_acquire(store->member.lock, &now, error))
		return -1;
	const int status = resume(store, options, now, error);
	smalti_lock_release(store->member.lock);
	return status;
}

struct smalti_store *smalti_store_open(const char *directory, const struct smalti_store_options *options,
				       struct smalti_error *error)
{
	struct smalti_store *store = smalti_calloc(1, sizeof(*store), error);
	if (!store)
		return NULL;
	pthread_mutex_init(&store->mutex, NULL);
	if (open_directory(store, directory, options, error) == 0)
		return store;
	smalti_store_close(store);
	return NULL;
}

void smalti_store_close(struct smalti_store *store)
{
	if (!store)
		return;
	smalti_member_close(&store->member);
	smalti_shards_free(&store->shards);
	pthread_mutex_destroy(&store->mutex);
	free(store);
}
