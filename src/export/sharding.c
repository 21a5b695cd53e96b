/* SPDX-License-Identifier: Apache-2.0 */
#include "export/sharding.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdlib.h>

char *smalti_export_shard_path(const struct smalti_export_run *run, const char *extension,
			       struct smalti_error *error)
{
	return smalti_format(error, "%s/features-%06" PRId64 ".%s", run->options->output, run->shards,
			     extension);
}

static void free_names(struct smalti_export_names *names)
{
	for (int i = 0; i < SMALTI_FEATURES_CAPTIONS_MAX; i++)
		free(names->texts[i]);
	free(names->image);
}

static int make_names(const struct smalti_export_run *run, const struct smalti_features_row *row,
		      struct smalti_export_names *names, struct smalti_error *error)
{
	const struct smalti_export_sharding *sharding = run->kind->sharding;
	for (int i = 0; i < run->info.caption_count; i++) {
		if (!row->texts[i].tokens)
			continue;
		names->texts[i] = sharding->name_text(run, row, i, error);
		if (!names->texts[i])
			return -1;
	}
	if (row->image.latent_height)
		names->image = sharding->name_image(row, error);
	return names->image || !row->image.latent_height ? 0 : -1;
}

static int open_shard(struct smalti_export_run *run, struct smalti_error *error)
{
	if (!run->in_shard && run->kind->sharding->open(run, error))
		return -1;
	run->in_shard = true;
	return 0;
}

static int close_shard(struct smalti_export_run *run, struct smalti_error *error)
{
	run->in_shard = false;
	if (run->kind->sharding->close(run, error))
		return -1;
	run->shards++;
	run->progress->files += run->kind->sharding->files;
	run->settled = true;
	return 0;
}

static int add_row(struct smalti_export_run *run, const struct smalti_features_row *row,
		   struct smalti_error *error)
{
	struct smalti_export_names names = {.image = NULL};
	char *text =
	    make_names(run, row, &names, error) ? NULL : smalti_export_describe(run, row, &names, error);
	const int status = text ? run->kind->sharding->add(run, row, &names, text, error) : -1;
	free(text);
	free_names(&names);
	return status;
}

int smalti_export_shard_row(struct smalti_export_run *run, const struct smalti_features_row *row,
			    struct smalti_error *error)
{
	if (open_shard(run, error) || add_row(run, row, error))
		return -1;
	return run->kind->sharding->is_full(run) ? close_shard(run, error) : 0;
}

int smalti_export_shard_settle(struct smalti_export_run *run, bool last, struct smalti_error *error)
{
	if (!last)
		return 0;
	run->settled = true;
	return run->in_shard ? close_shard(run, error) : 0;
}
