/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/safetensors.h"
#include "base/file.h"
#include "export/export.h"

/* The header, with every tensor's name and place, comes first: rows are collected by their extents until a
 * shard is full; then a second reader, which follows the first, brings their values. */

enum { TENSORS = 1 << 16 }; /* of a shard at most, for its header's sake */

struct tensor {
	int64_t index; /* of its item */
	int number;    /* of the feature */
};

struct collection {
	struct smalti_export_run *run;
	struct smalti_features *follower;
	struct smalti_features_row row; /* the follower's; index -1: none yet */
	struct smalti_tensor_view *views;
	struct tensor *tensors;
	int count;
	int64_t bytes;
	struct smalti_writer *items; /* the shard's .jsonl */
};

static int check(struct smalti_export_run *run, struct smalti_error *error)
{
	for (int i = 0; i < run->info.caption_count; i++)
		if (strchr(run->info.captions[i], '/'))
			return smalti_fail(
			    error, SMALTI_EUNSUPPORTED,
			    "caption '%s': a '/' in it does not go into a tensor's name; export "
			    "in another format",
			    run->info.captions[i]);
	return 0;
}

static int begin(struct smalti_export_run *run, struct smalti_error *error)
{
	struct collection *c = run->state;
	c->run = run;
	c->row.index = -1;
	c->views = smalti_calloc(TENSORS, sizeof(*c->views), error);
	c->tensors = smalti_calloc(TENSORS, sizeof(*c->tensors), error);
	c->follower = smalti_export_open(run, run->progress->rows, error);
	return c->views && c->tensors && c->follower ? 0 : -1;
}

static char *name_feature(const struct smalti_export_run *run, const struct smalti_features_row *row,
			  int number, struct smalti_error *error)
{
	if (number == run->info.caption_count)
		return smalti_format(error, "vae/%s", row->key);
	return smalti_format(error, "t5/%s/%s", run->info.captions[number], row->key);
}

/* Takes the name. */
static void collect(struct collection *c, char **name, const struct smalti_features_row *row, int number)
{
	const struct smalti_export_feature feature = smalti_export_feature(c->run, row, number);
	struct smalti_tensor_view *view = &c->views[c->count];
	*view = (struct smalti_tensor_view){.name = *name, .dtype = c->run->dtype, .rank = feature.rank};
	*name = NULL;
	memcpy(view->shape, feature.shape, sizeof(feature.shape));
	c->bytes += feature.count * smalti_dtype_bytes(view->dtype);
	c->tensors[c->count++] = (struct tensor){row->index, number};
}

/* Moves the follower to the item. */
static int follow(struct collection *c, int64_t index, struct smalti_error *error)
{
	struct smalti_error damage = SMALTI_NO_ERROR; /* of the last row that was passed over */
	while (c->row.index != index) {
		struct smalti_error cause = SMALTI_NO_ERROR;
		const int found = smalti_features_next(c->follower, &c->row, &cause);
		if (found == 0)
			return smalti_fail(error, SMALTI_EIO,
					   "item %" PRId64 ": was there a moment before: %.900s", index,
					   damage.message);
		if (found < 0 && cause.code != SMALTI_ECORRUPT)
			return smalti_pass(error, &cause);
		if (found < 0) {
			damage = cause;
			c->row.index = -1;
		}
	}
	return 0;
}

static const void *source(void *user, int index, int64_t first, int64_t count, struct smalti_error *error)
{
	(void)count;
	struct collection *c = user;
	const struct tensor *tensor = &c->tensors[index];
	if (follow(c, tensor->index, error))
		return NULL;
	const struct smalti_export_feature feature = smalti_export_feature(c->run, &c->row, tensor->number);
	return (const char *)feature.values + first * smalti_dtype_bytes(c->run->dtype);
}

static void forget(struct collection *c)
{
	for (int i = 0; i < c->count; i++)
		free((char *)(uintptr_t)c->views[i].name);
	c->count = 0;
	c->bytes = 0;
}

/* Completes the items' file first: where the tensors are, it is, too. */
static int close_shard(struct smalti_export_run *run, struct smalti_error *error)
{
	struct collection *c = run->state;
	struct smalti_writer *items = c->items;
	c->items = NULL;
	SCOPED(free) char *path = smalti_export_shard_path(run, "safetensors", error);
	int status = smalti_writer_commit(items, error);
	if (!status)
		status = path ? smalti_safetensors_stream(path, c->views, c->count, source, c, error) : -1;
	forget(c);
	return status;
}

static int open_shard(struct smalti_export_run *run, struct smalti_error *error)
{
	struct collection *c = run->state;
	SCOPED(free) char *path = smalti_export_shard_path(run, "jsonl", error);
	c->items = path ? smalti_writer_open(path, error) : NULL;
	return c->items ? 0 : -1;
}

static int add(struct smalti_export_run *run, const struct smalti_features_row *row, char **names,
	       const char *text, struct smalti_error *error)
{
	(void)error; /* the writer looks at the stream's */
	struct collection *c = run->state;
	fprintf(smalti_writer_stream(c->items), "%s\n", text);
	for (int i = 0; i <= run->info.caption_count; i++)
		if (names[i])
			collect(c, &names[i], row, i);
	return 0;
}

static bool is_full(const struct smalti_export_run *run)
{
	const struct collection *c = run->state;
	return c->bytes >= run->options->shard_bytes || c->count > TENSORS - SMALTI_EXPORT_FEATURES_MAX;
}

static void end(struct smalti_export_run *run)
{
	struct collection *c = run->state;
	smalti_writer_abort(c->items);
	smalti_features_close(c->follower);
	forget(c);
	free(c->views);
	free(c->tensors);
}

const struct smalti_export_kind smalti_export_safetensors = {.name = "safetensors",
							     .check = check,
							     .state_bytes = sizeof(struct collection),
							     .begin = begin,
							     .row = smalti_export_shard_row,
							     .settle = smalti_export_shard_settle,
							     .end = end,
							     .open_shard = open_shard,
							     .close_shard = close_shard,
							     .files = 2,
							     .name_feature = name_feature,
							     .add = add,
							     .is_full = is_full};
