/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/shipped.h"
#include "jobs/unused.h"
#include "smalti/model.h"

#include <xxhash.h>

enum { TENSOR_BYTES = 4096 }; /* a page, of each tensor */

/* Adds the length first, so that neighbours cannot trade bytes. */
static void add(XXH3_state_t *state, const void *data, int64_t bytes)
{
	XXH3_128bits_update(state, &bytes, sizeof(bytes));
	if (bytes > 0)
		XXH3_128bits_update(state, data, (size_t)bytes);
}

static int add_file(XXH3_state_t *state, const char *path, struct smalti_error *error)
{
	const int found = smalti_find_file(path, error);
	if (found <= 0) {
		add(state, NULL, -1);
		return found;
	}
	struct smalti_map map;
	if (smalti_map_open(&map, path, error) < 0)
		return -1;
	add(state, map.data, map.size);
	const int status = smalti_map_check(&map, error);
	smalti_map_close(&map);
	return status;
}

static void add_tensor(XXH3_state_t *state, const struct smalti_tensor_view *view)
{
	const int64_t dtype = view->usable ? (int64_t)view->dtype : -1;
	add(state, view->name, (int64_t)strlen(view->name));
	add(state, &dtype, sizeof(dtype));
	add(state, view->shape, view->rank * (int64_t)sizeof(view->shape[0]));
	add(state, view->data, view->bytes < TENSOR_BYTES ? view->bytes : TENSOR_BYTES);
}

static int add_weights(XXH3_state_t *state, const struct smalti_checkpoint *weights,
		       struct smalti_error *error)
{
	static const char int8[] = "int8", w8a8[] = "w8a8";
	if (weights->wants_int8)
		add(state, weights->wants_w8a8 ? w8a8 : int8, sizeof(int8));
	for (int i = 0; i < weights->shard_count; i++) {
		const struct smalti_gguf *gguf = weights->shards[i].gguf;
		if (gguf) /* its metadata are a configuration */
			add(state, gguf->map.data, gguf->header_bytes);
	}
	for (int64_t t = 0; t < weights->count; t++)
		add_tensor(state, &weights->entries[t].view);
	return smalti_checkpoint_check(weights, error);
}

int smalti_digest(const char *const *files, int file_count, const struct smalti_checkpoint *const *weights,
		  int weight_count, char digest[SMALTI_DIGEST_LENGTH + 1], struct smalti_error *error)
{
	XXH3_state_t *state = XXH3_createState();
	if (!state)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a checksum");
	XXH3_128bits_reset(state);
	int status = 0;
	for (int i = 0; i < file_count && status == 0; i++)
		status = add_file(state, files[i], error);
	for (int i = 0; i < weight_count && status == 0; i++)
		status = add_weights(state, weights[i], error);
	const XXH128_hash_t hash = XXH3_128bits_digest(state);
	snprintf(digest, SMALTI_DIGEST_LENGTH + 1, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
	XXH3_freeState(state);
	return status;
}

const char *smalti_embedded_model(struct smalti_error *error)
{
	SMALTI_REPORT(error);
	static char path[PATH_MAX];
	const char *chosen = getenv("SMALTI_MODEL_DIR");
	if (chosen && *chosen)
		return chosen;
	if (smalti_find_shipped("models/tesserae", path))
		return path;
	smalti_fail(
	    error, SMALTI_EIO,
	    "the embedded model is neither beside the program nor in %s; name a model directory, or set "
	    "SMALTI_MODEL_DIR",
	    path);
	return NULL;
}
