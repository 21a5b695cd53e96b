/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/tar_writer.h"
#include "base/file.h"
#include "checkpoint/npy.h"
#include "export/export.h"

/* Members that follow each other and agree up to the first dot are one item to webdataset. Keys may hold
 * dots, slashes and more, so an item is called by its index and its key stands in its JSON. */

struct webdataset {
	struct smalti_writer *writer; /* of the shard in progress; NULL: none */
	struct smalti_tar_writer tar;
};

static int open_shard(struct smalti_export_run *run, struct smalti_error *error)
{
	struct webdataset *state = run->state;
	SCOPED(free) char *path = smalti_export_shard_path(run, "tar", error);
	state->writer = path ? smalti_writer_open(path, error) : NULL;
	if (!state->writer)
		return -1;
	state->tar = (struct smalti_tar_writer){.stream = smalti_writer_stream(state->writer)};
	return 0;
}

static int close_shard(struct smalti_export_run *run, struct smalti_error *error)
{
	struct webdataset *state = run->state;
	struct smalti_writer *writer = state->writer;
	state->writer = NULL;
	smalti_tar_finish(&state->tar);
	return smalti_writer_commit(writer, error);
}

static int to_tar(void *tar, const void *data, int64_t bytes, struct smalti_error *error)
{
	(void)error; /* the writer looks at the stream's */
	smalti_tar_write(tar, data, bytes);
	return 0;
}

/* Makes f32 of bf16, which NumPy has not. */
static int write_array(struct smalti_export_run *run, struct smalti_tar_writer *tar, const char *name,
		       const struct smalti_export_feature *feature, struct smalti_error *error)
{
	const enum smalti_dtype dtype = run->dtype == SMALTI_F16 ? SMALTI_F16 : SMALTI_F32;
	char header[SMALTI_NPY_HEADER];
	const int64_t length =
	    smalti_npy_header(dtype == SMALTI_F16 ? "<f2" : "<f4", feature->rank, feature->shape, header);
	if (smalti_tar_add(tar, name, length + feature->count * smalti_dtype_bytes(dtype), error))
		return -1;
	smalti_tar_write(tar, header, length);
	return smalti_export_values(run, feature->values, feature->count, dtype, to_tar, tar, error);
}

static char *name_feature(const struct smalti_export_run *run, const struct smalti_features_row *row,
			  int number, struct smalti_error *error)
{
	(void)row;
	if (number == run->info.caption_count)
		return smalti_format(error, "vae.npy");
	return number ? smalti_format(error, "t5-%d.npy", number + 1) : smalti_format(error, "t5.npy");
}

static int add(struct smalti_export_run *run, const struct smalti_features_row *row, char **names,
	       const char *text, struct smalti_error *error)
{
	enum { MEMBER = 64 }; /* of a member's name */
	struct webdataset *state = run->state;
	struct smalti_tar_writer *tar = &state->tar;
	const int64_t length = (int64_t)strlen(text);
	char member[MEMBER];
	snprintf(member, MEMBER, "%09" PRId64 ".json", row->index);
	int status = smalti_tar_add(tar, member, length, error);
	if (!status)
		smalti_tar_write(tar, text, length);
	for (int i = 0; i <= run->info.caption_count && !status; i++) {
		const struct smalti_export_feature feature = smalti_export_feature(run, row, i);
		if (!names[i])
			continue;
		snprintf(member, MEMBER, "%09" PRId64 ".%s", row->index, names[i]);
		status = write_array(run, tar, member, &feature, error);
	}
	return status;
}

static bool is_full(const struct smalti_export_run *run)
{
	const struct webdataset *state = run->state;
	return state->tar.bytes >= run->options->shard_bytes;
}

static void end(struct smalti_export_run *run)
{
	smalti_writer_abort(((struct webdataset *)run->state)->writer);
}

const struct smalti_export_kind smalti_export_webdataset = {.name = "webdataset",
							    .state_bytes = sizeof(struct webdataset),
							    .row = smalti_export_shard_row,
							    .settle = smalti_export_shard_settle,
							    .end = end,
							    .open_shard = open_shard,
							    .close_shard = close_shard,
							    .files = 1,
							    .name_feature = name_feature,
							    .add = add,
							    .is_full = is_full};
