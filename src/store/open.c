/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "store/directory.h"
#include "store/store.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Changes the directory first: only then network file systems show at once what others have done to it. */
static int read_shards(struct smalti_store *store, struct smalti_error *error)
{
	if (utimensat(AT_FDCWD, store->directory, NULL, 0))
		return smalti_fail_errno(error, "%s: cannot be touched", store->directory);
	return smalti_shards_read(&store->shards, store->directory, error) ||
		       smalti_shards_check(&store->shards, store->directory, error) ||
		       smalti_shards_describe(&store->shards, store->directory, error)
		   ? -1
		   : 0;
}

int smalti_store_read(struct smalti_store *store, struct smalti_error *error)
{
	HOLD_MUTEX(&store->mutex);
	return read_shards(store, error);
}

static int make_durably(const char *directory, struct smalti_error *error)
{
	struct stat info;
	if (stat(directory, &info) == 0)
		return smalti_make_directory(directory, error); /* which fails if it is something else */
	SCOPED(free) char *parent = smalti_directory_of(directory, error);
	return parent && smalti_make_directory(directory, error) == 0 ? smalti_sync_directory(parent, error)
								      : -1;
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
	int status =
	    smalti_directory_clean(store->directory, &store->shards, store->claims, now, NULL, error);
	if (status)
		return -1;
	if (!smalti_manifest_fits(store->directory, &store->shards))
		smalti_manifest_remove(store->directory);
	if (!smalti_failed_fits(store->directory, &store->shards))
		status = smalti_failed_rebuild(store->directory, &store->shards, error);
	return status;
}

/* The lock is held. */
static int resume(struct smalti_store *store, const struct smalti_store_options *options, int64_t now,
		  struct smalti_error *error)
{
	const int there = smalti_directory_look(store->directory, error);
	if (there < 0 || (there > 0 && compare(store->directory, options, error)) ||
	    smalti_directory_prepare(store->directory, error) ||
	    (there == 0 && smalti_directory_describe(store->directory, options->identity, error)) ||
	    smalti_store_read(store, error))
		return -1;
	store->claims = smalti_claims_open(store->directory, store->lease, store->heartbeat, error);
	return store->claims ? cleanup(store, now, error) : -1;
}

static int open_directory(struct smalti_store *store, const struct smalti_store_options *options,
			  struct smalti_error *error)
{
	const struct smalti_lock_wait wait = {options->waiting, options->user, store->lease};
	/* A foreign directory is looked at before there is a lock in it. */
	if (make_durably(store->directory, error) || smalti_directory_look(store->directory, error) < 0)
		return -1;
	store->heartbeat = smalti_heartbeat_start(store->lease, error);
	store->lock =
	    store->heartbeat ? smalti_lock_open(store->directory, &wait, store->heartbeat, error) : NULL;
	int64_t now;
	if (!store->lock || smalti_lock_acquire(store->lock, &now, error))
		return -1;
	const int status = resume(store, options, now, error);
	smalti_lock_release(store->lock);
	return status;
}

struct smalti_store *smalti_store_open(const char *directory, const struct smalti_store_options *options,
				       struct smalti_error *error)
{
	struct smalti_store *store = smalti_calloc(1, sizeof(*store), error);
	if (!store)
		return NULL;
	pthread_mutex_init(&store->mutex, NULL);
	store->lease = options->lease_seconds ? options->lease_seconds : SMALTI_LEASE;
	store->directory = smalti_format(error, "%s", directory);
	int status = store->directory ? 0 : -1;
	if (status == 0 && (store->lease < 1 || store->lease > SMALTI_LEASE_MAX))
		status = smalti_fail(error, SMALTI_EINVAL, "a lease of %lld seconds: 1 to %d are possible",
				     (long long)store->lease, SMALTI_LEASE_MAX);
	if (status == 0)
		status = open_directory(store, options, error);
	if (status == 0)
		return store;
	smalti_store_close(store);
	return NULL;
}

void smalti_store_close(struct smalti_store *store)
{
	if (!store)
		return;
	if (store->claims && smalti_lock_acquire(store->lock, NULL, NULL) == 0) {
		smalti_claims_remove_all(store->claims);
		smalti_lock_release(store->lock);
	}
	smalti_claims_close(store->claims);
	smalti_lock_close(store->lock);
	smalti_heartbeat_stop(store->heartbeat);
	smalti_shards_free(&store->shards);
	pthread_mutex_destroy(&store->mutex);
	free(store->directory);
	free(store);
}
