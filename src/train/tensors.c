/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensors.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "codelets/codelets.h"
#include "ranks/ranks.h"

#include <xxhash.h>

/* A file that is written, by all values of a tensor at a time. */
struct source {
	struct smalti_task_group *task_group;
	const struct smalti_parameter *list;
	int64_t count;
	const struct smalti_tensor_view *views;
	float *values;
	int64_t room, delivered; /* delivered: tensors so far */
	XXH3_state_t *digest;
};

/* The destination of a parameter's values. */
struct destination {
	struct smalti_parameter_layout layout;
	float *values; /* of the whole tensor */
};

static int put(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)count;
	(void)error;
	const struct destination *to = user;
	const struct smalti_parameter_layout *l = &to->layout;
	for (int64_t row = 0; row < l->rows; row++)
		memcpy(to->values + row * l->in + l->first, values + row * l->columns,
		       (size_t)l->columns * sizeof(*values));
	return 0;
}

/* Delivers a tensor's parts, which have its name, into `values` of rank 0; NULL: they are not needed. */
static int deliver(const struct source *source, const char *name, struct smalti_error *error)
{
	if (smalti_ranks_count() > 1)
		smalti_task_group_place(source->task_group, 0);
	for (int64_t i = 0; i < source->count; i++) {
		const struct smalti_parameter *p = &source->list[i];
		if (strcmp(p->name, name) != 0)
			continue;
		struct destination to = {smalti_parameter_layout(p), source->values};
		smalti_insert(deliver, source->task_group, (.x = p->value), .count = p->count,
			      .sink = source->values ? put : NULL, .user = &to);
		smalti_task_group_wait(source->task_group);
	}
	smalti_task_group_place(source->task_group, SMALTI_ANYWHERE);
	return smalti_task_group_status(source->task_group, error);
}

static int fetch(struct source *source, const struct smalti_tensor_view *view, struct smalti_error *error)
{
	const int64_t count = smalti_tensor_elements(view);
	if (count > source->room) {
		free(source->values);
		source->values = smalti_aligned_alloc(count, sizeof(*source->values), error);
		source->room = source->values ? count : 0;
		if (!source->values)
			return -1;
	}
	source->delivered++;
	if (deliver(source, view->name, error) < 0)
		return -1;
	XXH3_64bits_update(source->digest, source->values, (size_t)count * sizeof(*source->values));
	return 0;
}

static const void *piece(void *user, int index, int64_t first, int64_t count, struct smalti_error *error)
{
	(void)count;
	struct source *source = user;
	if (first == 0 && fetch(source, &source->views[index], error) < 0)
		return NULL;
	return source->values + first;
}

/* Returns the tensors of the list, each at its first part; *tensors: their number. */
static struct smalti_tensor_view *views_of(const struct smalti_parameter *list, int64_t count,
					   int64_t *tensors, struct smalti_error *error)
{
	struct smalti_tensor_view *views = smalti_calloc(count, sizeof(*views), error);
	*tensors = 0;
	for (int64_t i = 0; views && i < count; i++) {
		const struct smalti_parameter tensor = smalti_parameter_whole(&list[i]);
		if (list[i].cut.first > 0)
			continue;
		struct smalti_tensor_view *view = &views[(*tensors)++];
		*view = (struct smalti_tensor_view){
		    .name = tensor.name, .dtype = SMALTI_F32, .rank = tensor.rank};
		memcpy(view->shape, tensor.shape, sizeof(tensor.shape));
	}
	return views;
}

/* Delivers what was not delivered yet, so that all ranks have inserted the same tasks. */
static int deliver_rest(struct source *source, int64_t count, struct smalti_error *error)
{
	int status = 0;
	free(source->values);
	source->values = NULL;
	while (smalti_ranks_count() > 1 && source->delivered < count)
		if (deliver(source, source->views[source->delivered++].name, error) < 0)
			status = -1;
	return status;
}

static int write_tiles(const char *path, struct source *source, const struct smalti_tensor_view *views,
		       int64_t count, uint64_t *digest, struct smalti_error *error)
{
	source->digest = XXH3_createState();
	if (!source->digest)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a checksum");
	XXH3_64bits_reset(source->digest);
	const int status = smalti_safetensors_stream(path, views, (int)count, piece, source, error);
	*digest = XXH3_64bits_digest(source->digest);
	XXH3_freeState(source->digest);
	return status;
}

struct digests {
	uint64_t values, file; /* of the tensors' bytes; file: with the header */
};

/* Digests a file, and drops its pages: beside the training there may be no memory for them. */
static int digest_file(const struct smalti_safetensors *file, struct digests *digests,
		       struct smalti_error *error)
{
	enum { PIECE = 1 << 24 };
	const char *bytes = file->map.data;
	const int64_t size = file->map.size;
	int64_t header = size;
	XXH3_state_t *state = XXH3_createState();
	if (!state)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a checksum");
	for (int64_t i = 0; i < file->count; i++)
		header -= file->tensors[i].bytes;
	XXH3_64bits_reset(state);
	for (int64_t at = header; at < size; at += PIECE) {
		const int64_t count = smalti_min(PIECE, size - at);
		XXH3_64bits_update(state, bytes + at, (size_t)count);
		smalti_map_drop(bytes + at, count);
	}
	digests->values = XXH3_64bits_digest(state);
	digests->file = XXH3_64bits_withSeed(bytes, (size_t)header, digests->values);
	XXH3_freeState(state);
	return 0;
}

static int refuse_damage(const char *path, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_ECORRUPT, "%s: it is not as it was written", path);
}

/* Checks that the file has these tensors, and no others. */
static int check_tensors(const char *path, const struct smalti_safetensors *file,
			 const struct smalti_tensor_view *views, int64_t count, struct smalti_error *error)
{
	const char *absent = NULL;
	for (int64_t i = 0; i < count && !absent; i++) {
		const struct smalti_tensor_view *view = smalti_safetensors_find(file, views[i].name);
		const size_t extents = (size_t)views[i].rank * sizeof(*views[i].shape);
		const bool fits = view && view->usable && view->dtype == SMALTI_F32 &&
				  view->rank == views[i].rank &&
				  memcmp(view->shape, views[i].shape, extents) == 0;
		absent = fits ? NULL : views[i].name;
	}
	if (!absent && file->count == count)
		return 0;
	char found[160];
	if (absent)
		snprintf(found, sizeof(found), "tensor '%.100s' is not in it, or in another shape", absent);
	else
		snprintf(found, sizeof(found), "%" PRId64 " tensors are expected, it has %" PRId64, count,
			 file->count);
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "%s: %s: it is of another optimizer or transformer; go on with those that the run was "
	    "begun with, or begin another run with the checkpoint's weights (--transformer)",
	    path, found);
}

int smalti_tiles_write(const char *path, struct smalti_task_group *task_group,
		       const struct smalti_parameter *list, int64_t count, uint64_t *digest,
		       struct smalti_error *error)
{
	int64_t tensors;
	SCOPED(free) struct smalti_tensor_view *views = views_of(list, count, &tensors, error);
	struct source source = {.task_group = task_group, .list = list, .count = count, .views = views};
	if (!views && error)
		smalti_ranks_give_up(error);
	if (!views)
		return -1;
	const int written = path ? write_tiles(path, &source, views, tensors, digest, error) : 0;
	const int rest = deliver_rest(&source, tensors, written < 0 ? NULL : error);
	if (written < 0 || rest < 0 || !path)
		return written < 0 || rest < 0 ? -1 : 0;
	struct digests found = {0};
	struct smalti_safetensors *file = smalti_safetensors_open(path, error);
	int status = file ? digest_file(file, &found, error) : -1;
	if (status == 0 && found.values != *digest)
		status = refuse_damage(path, error);
	if (file && smalti_safetensors_check(file, error) < 0)
		status = -1;
	smalti_safetensors_close(file);
	*digest = found.file;
	return status;
}

/* Checks the tensors; and the digest, for which rank 0 reads the whole file. */
static int check_file(const char *path, const struct smalti_safetensors *file,
		      const struct smalti_tensor_view *views, int64_t count, uint64_t digest, bool bare,
		      struct smalti_error *error)
{
	struct digests found = {digest, digest};
	if (smalti_ranks_own() == 0 && digest_file(file, &found, error) < 0)
		return -1;
	if ((bare ? found.values : found.file) != digest)
		return refuse_damage(path, error);
	return check_tensors(path, file, views, count, error);
}

int smalti_tiles_read(const char *path, struct smalti_task_group *task_group,
		      const struct smalti_parameter *list, int64_t count, uint64_t digest, bool bare,
		      struct smalti_error *error)
{
	int64_t tensors;
	SCOPED(free) struct smalti_tensor_view *views = views_of(list, count, &tensors, error);
	struct smalti_safetensors *file = views ? smalti_safetensors_open(path, error) : NULL;
	if (!file)
		return -1;
	int status = check_file(path, file, views, tensors, digest, bare, error);
	for (int64_t i = 0; i < count && status == 0; i++) {
		const struct smalti_tensor_view *view = smalti_safetensors_find(file, list[i].name);
		struct smalti_tile *stored = smalti_tile_over(task_group, 1, view->bytes, view->data);
		smalti_parameter_take(&list[i], task_group, stored);
		smalti_tile_release(stored);
	}
	smalti_task_group_wait(task_group); /* its tasks read the mapped file */
	if (status == 0)
		status = smalti_task_group_status(task_group, error);
	if (smalti_safetensors_check(file, error) < 0)
		status = -1;
	smalti_safetensors_close(file);
	return status;
}
