/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/zip_writer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/set.h"
#include "checkpoint/npy.h"
#include "export/export.h"
#include "features/reader.h"

#include <fcntl.h>
#include <xxhash.h>

/* One file per caption and per image, as the reference has it (docs/reference.md 6.3, 6.4). Files appear
 * complete, but are on the disk for certain only when the whole file system was synchronised, now and then:
 * until then a later run makes them again. */

static const double SETTLE_SECONDS = 10;

struct pixart {
	char *directories[SMALTI_EXPORT_FEATURES_MAX]; /* OUTPUT/DIRECTORY, of each feature */
	int directory; /* OUTPUT, open from the beginning: what cannot be written since is told to it, once */
	bool lost;     /* it was told: which files are on the disk is not known */
	double settled; /* when */
};

/* Names */

static const char extension_of_all[] = ".npy"; /* .npz are named alike */

/* Fails if this is another item of that name. */
static int compare(const struct smalti_features_row *row, const char *name, const char *key,
		   struct smalti_error *error)
{
	struct smalti_error ignored = SMALTI_NO_ERROR;
	SCOPED(free)
	char *other = smalti_export_has_features(row) && strcmp(row->key, key) != 0
			  ? smalti_loader_name(row->key, extension_of_all, &ignored)
			  : NULL;
	const bool same = other && strcmp(other, name) == 0;
	if (!same)
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "items '%s' and '%s' would both be %s: PixArt's training cannot tell them apart; rename "
	    "one, or export in another format",
	    row->key, key, name);
}

/* Looks for the item whose name was `name` before `key`'s. */
static int find_other(const struct smalti_export_run *run, const char *name, const char *key,
		      struct smalti_error *error)
{
	SCOPED(smalti_features_close)
	struct smalti_features *reader = smalti_features_open_heads(run->options->directory, error);
	int status = reader ? 0 : -1;
	for (int found = 1; !status && found;) {
		struct smalti_features_row row;
		found = smalti_export_next(reader, &row, error);
		status = found > 0 ? compare(&row, name, key, error) : found;
	}
	return status;
}

static int check_row(struct smalti_export_run *run, const struct smalti_features_row *row,
		     struct smalti_set *names, struct smalti_error *error)
{
	struct smalti_error own = SMALTI_NO_ERROR;
	SCOPED(free)
	char *name =
	    smalti_export_has_features(row) ? smalti_loader_name(row->key, extension_of_all, &own) : NULL;
	if (!name)
		return own.code == SMALTI_ENOMEM ? smalti_pass(error, &own) : 0;
	int status = smalti_set_add(names, XXH3_64bits(name, strlen(name)), error);
	if (status == 0)
		status = find_other(run, name, row->key, error);
	return status < 0 ? -1 : 0;
}

/* Finds two items of one name before the first file is written. */
static int check(struct smalti_export_run *run, struct smalti_error *error)
{
	struct smalti_set names = {0};
	SCOPED(smalti_features_close)
	struct smalti_features *reader = smalti_features_open_heads(run->options->directory, error);
	struct smalti_export_progress *progress = run->progress;
	int status = reader ? 0 : -1;
	progress->checking = true;
	for (int found = 1; !status && found;) {
		struct smalti_features_row row;
		found = smalti_export_next(reader, &row, error);
		status = found > 0 ? check_row(run, &row, &names, error) : found;
		progress->rows += found != 0;
		if (!status)
			status = smalti_export_watch(run, error);
	}
	progress->checking = false;
	progress->rows = 0;
	smalti_set_free(&names);
	return status;
}

static int name_captions(const struct smalti_export_run *run, struct pixart *pixart,
			 struct smalti_error *error)
{
	for (int i = 0; i < run->info.caption_count; i++) {
		SCOPED(free) char *directory = smalti_loader_directory(run->info.captions[i], error);
		if (directory)
			pixart->directories[i] =
			    smalti_format(error, "%s/%s", run->options->output, directory);
		if (!pixart->directories[i])
			return -1;
		for (int j = 0; j < i; j++)
			if (strcmp(pixart->directories[i], pixart->directories[j]) == 0)
				return smalti_fail(error, SMALTI_EINVAL,
						   "captions '%s' and '%s' would both be in %s; export in "
						   "another format",
						   run->info.captions[j], run->info.captions[i],
						   pixart->directories[i]);
		smalti_writer_clean(pixart->directories[i], true);
	}
	return 0;
}

static int begin(struct smalti_export_run *run, struct smalti_error *error)
{
	struct pixart *pixart = run->state;
	pixart->directory = open(run->options->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pixart->directory < 0)
		return smalti_fail_errno(error, "%s: cannot be opened", run->options->output);
	if (name_captions(run, pixart, error))
		return -1;
	pixart->settled = smalti_now();
	if (!run->info.latent_channels)
		return 0;
	char *images = smalti_format(error, "%s/img_sdxl_vae_features_%" PRId64 "resolution_ms_new",
				     run->options->output, run->info.image_size);
	pixart->directories[run->info.caption_count] = images;
	smalti_writer_clean(images, true);
	return images ? 0 : -1;
}

/* Files */

/* Opens DIRECTORY/NAME to be written, and makes its directories. */
static struct smalti_writer *open_file(const char *directory, const char *key, const char *extension,
				       struct smalti_error *error)
{
	SCOPED(free) char *name = smalti_loader_name(key, extension, error);
	SCOPED(free) char *path = name ? smalti_format(error, "%s/%s", directory, name) : NULL;
	struct smalti_writer *writer = NULL;
	if (path && smalti_make_parents(directory, name, error) == 0)
		writer = smalti_writer_open(path, error);
	return writer;
}

/* Puts the file in place, or drops it; frees the writer. */
static int close_file(struct smalti_export_run *run, struct smalti_writer *writer, int status,
		      struct smalti_error *error)
{
	if (status)
		smalti_writer_abort(writer);
	else
		status = smalti_writer_place(writer, error);
	run->progress->files += status == 0;
	return status;
}

static int to_stream(void *stream, const void *data, int64_t bytes, struct smalti_error *error)
{
	(void)error; /* the writer looks at the stream's */
	fwrite(data, 1, (size_t)bytes, stream);
	return 0;
}

/* An .npy file in memory. */
struct array {
	char *bytes;
	int64_t used, size;
};

static int begin_array(struct array *array, const char *descr, int rank, const int64_t *shape,
		       struct smalti_error *error)
{
	char header[SMALTI_NPY_HEADER];
	array->used = smalti_npy_header(descr, rank, shape, header);
	int64_t size = 2; /* bytes of a value */
	bool small = true;
	for (int i = 0; i < rank; i++)
		small = small && smalti_multiply(&size, shape[i]);
	array->size = array->used + size;
	array->bytes = small ? smalti_calloc(array->size, 1, error) : NULL;
	if (!array->bytes)
		return small ? -1
			     : smalti_fail(error, SMALTI_EUNSUPPORTED, "a caption's features are too large");
	memcpy(array->bytes, header, (size_t)array->used);
	return 0;
}

static int to_array(void *user, const void *data, int64_t bytes, struct smalti_error *error)
{
	(void)error;
	struct array *array = user;
	memcpy(array->bytes + array->used, data, (size_t)bytes);
	array->used += bytes;
	return 0;
}

/* Writes zeros behind the caption's tokens. */
static int write_features(struct smalti_export_run *run, struct smalti_zip *zip,
			  const struct smalti_export_feature *text, struct smalti_error *error)
{
	const int64_t shape[] = {1, run->info.max_tokens, run->info.text_width};
	struct array array;
	int status = begin_array(&array, "<f2", 3, shape, error);
	if (!status)
		status =
		    smalti_export_values(run, text->values, text->count, SMALTI_F16, to_array, &array, error);
	if (!status)
		status = smalti_zip_add(zip, "caption_feature.npy", array.bytes, array.size, error);
	free(array.bytes);
	return status;
}

static int write_mask(struct smalti_export_run *run, struct smalti_zip *zip, int64_t tokens,
		      struct smalti_error *error)
{
	const int64_t shape[] = {1, run->info.max_tokens};
	struct array array;
	int status = begin_array(&array, "<i2", 2, shape, error);
	for (int64_t i = 0; i < tokens && !status; i++)
		array.bytes[array.used + 2 * i] = 1;
	if (!status)
		status = smalti_zip_add(zip, "attention_mask.npy", array.bytes, array.size, error);
	free(array.bytes);
	return status;
}

/* Writes an .npz. */
static int write_caption(struct smalti_export_run *run, FILE *stream,
			 const struct smalti_export_feature *text, struct smalti_error *error)
{
	struct smalti_zip *zip = smalti_zip_begin(stream, error);
	if (!zip)
		return -1;
	if (write_features(run, zip, text, error) == 0 && write_mask(run, zip, text->shape[0], error) == 0)
		return smalti_zip_finish(zip, error);
	smalti_zip_discard(zip);
	return -1;
}

/* Writes an .npy. */
static int write_image(struct smalti_export_run *run, FILE *stream, const struct smalti_export_feature *image,
		       struct smalti_error *error)
{
	char header[SMALTI_NPY_HEADER];
	const int64_t length = smalti_npy_header("<f4", image->rank, image->shape, header);
	fwrite(header, 1, (size_t)length, stream);
	return smalti_export_values(run, image->values, image->count, SMALTI_F32, to_stream, stream, error);
}

static int write_feature(struct smalti_export_run *run, const char *key, int number,
			 const struct smalti_export_feature *feature, struct smalti_error *error)
{
	const bool image = number == run->info.caption_count;
	const struct pixart *pixart = run->state;
	if (!image && feature->shape[0] > run->info.max_tokens)
		return smalti_fail(error, SMALTI_ECORRUPT,
				   "a caption of %" PRId64 " tokens, where %" PRId64 " are the most",
				   feature->shape[0], run->info.max_tokens);
	struct smalti_writer *writer =
	    open_file(pixart->directories[number], key, image ? ".npy" : ".npz", error);
	if (!writer)
		return -1;
	FILE *stream = smalti_writer_stream(writer);
	const int status =
	    image ? write_image(run, stream, feature, error) : write_caption(run, stream, feature, error);
	return close_file(run, writer, status, error);
}

static int settle(struct smalti_export_run *run, bool last, struct smalti_error *error)
{
	(void)last;
	struct pixart *pixart = run->state;
	if (pixart->lost)
		return 0;
	pixart->lost = syncfs(pixart->directory);
	if (pixart->lost)
		return smalti_fail_errno(error, "%s: cannot be synchronised", run->options->output);
	pixart->settled = smalti_now();
	run->settled = true;
	return 0;
}

static int row(struct smalti_export_run *run, const struct smalti_features_row *row,
	       struct smalti_error *error)
{
	struct pixart *pixart = run->state;
	int status = 0;
	for (int i = 0; i <= run->info.caption_count && !status; i++) {
		const struct smalti_export_feature feature = smalti_export_feature(run, row, i);
		if (feature.count > 0)
			status = write_feature(run, row->key, i, &feature, error);
	}
	if (status)
		return -1;
	return smalti_now() < pixart->settled + SETTLE_SECONDS ? 0 : settle(run, false, error);
}

static void end(struct smalti_export_run *run)
{
	struct pixart *pixart = run->state;
	for (int i = 0; i < SMALTI_EXPORT_FEATURES_MAX; i++)
		free(pixart->directories[i]);
	if (pixart->directory >= 0)
		close(pixart->directory);
}

const struct smalti_export_kind smalti_export_pixart = {.name = "pixart",
							.fail_alone = true,
							.check = check,
							.state_bytes = sizeof(struct pixart),
							.begin = begin,
							.row = row,
							.settle = settle,
							.end = end};
