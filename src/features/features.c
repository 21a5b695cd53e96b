/* SPDX-License-Identifier: Apache-2.0 */
#include "smalti/features.h"
#include "features/reader.h"

/* Returns the set of a shard of the order; *shard becomes its number there. */
static const struct smalti_features_set *set_of(const struct smalti_features_source *source, int64_t *shard)
{
	const struct smalti_features_set *set = source->sets;
	while (*shard >= set->shards.count)
		*shard -= set++->shards.count;
	return set;
}

/* Finds the next row that is wanted. 1: *shard of *set has it as its row *index; else as next(). */
static int find_next(struct smalti_features_source *source, const struct smalti_features_set **set,
		     struct smalti_shard **shard, int64_t *index, struct smalti_error *error)
{
	struct smalti_features_place place;
	while (smalti_features_order_next(source->order, &place)) {
		struct smalti_error cause = SMALTI_NO_ERROR;
		*set = set_of(source, &place.shard);
		*index = (*set)->shards.entries[place.shard].id.first + place.row;
		*shard = smalti_features_shards_get(&source->shards, *set, place.shard, &cause);
		if (!*shard)
			return smalti_fail(error, cause.code, "row %" PRId64 ": %.900s", *index,
					   cause.message);
		if (!source->complete || smalti_shard_row_is_complete(*shard, *index))
			return 1;
		if (smalti_shard_check(*shard, error) < 0)
			return -1;
	}
	return 0;
}

/* Reads a row of a shard, as far as it is wanted. */
static int read_row(const struct smalti_features_source *source, const struct smalti_features_set *set,
		    struct smalti_shard *shard, int64_t index, struct smalti_features_row *row,
		    struct smalti_error *error)
{
	int wanted = 1;
	if (source->wants) {
		wanted = smalti_shard_row_head(shard, index, row, error);
		row->index = index + set->first_index;
		if (wanted == 0)
			wanted = source->wants(source->user, row, error);
	}
	const int status = wanted > 0 ? smalti_shard_row(shard, index, row, error) : wanted;
	row->index = index + set->first_index;
	return status;
}

int smalti_features_source_next(struct smalti_features_source *source, struct smalti_features_row *row,
				struct smalti_error *error)
{
	const struct smalti_features_set *set = source->sets;
	struct smalti_shard *shard;
	int64_t index = 0;
	const int found = find_next(source, &set, &shard, &index, error);
	row->index = index + set->first_index;
	if (found <= 0)
		return found;
	return read_row(source, set, shard, index, row, error) < 0 ? -1 : 1;
}

int smalti_features_source_get(struct smalti_features_source *source, int64_t index,
			       struct smalti_features_row *row, struct smalti_error *error)
{
	const struct smalti_features_set *set = source->sets;
	for (int64_t i = 1; i < source->set_count && index >= source->sets[i].first_index; i++)
		set = &source->sets[i];
	const int64_t own = index - set->first_index, number = smalti_features_set_find(set, own);
	if (number < 0)
		return smalti_fail(error, SMALTI_EINVAL, "%s: has no row %" PRId64, set->directory, own);
	struct smalti_shard *shard = smalti_features_shards_get(&source->shards, set, number, error);
	return shard ? read_row(source, set, shard, own, row, error) : -1;
}

/* Skips rows. Shards are opened for `complete` rows, for only they tell which rows are. */
static int skip_rows(struct smalti_features_source *source, int64_t count, struct smalti_error *error)
{
	if (!source->complete) {
		smalti_features_order_skip(source->order, count);
		return 0;
	}
	for (int64_t i = 0; i < count; i++) {
		const struct smalti_features_set *set;
		struct smalti_shard *shard;
		int64_t index;
		struct smalti_error cause = SMALTI_NO_ERROR;
		const int found = find_next(source, &set, &shard, &index, &cause);
		if (found == 0)
			break;
		if (found < 0 && !smalti_is_of_input(cause.code))
			return smalti_pass(error, &cause);
	}
	return 0;
}

struct smalti_features {
	struct smalti_features_set set;
	struct smalti_features_source source;
	struct smalti_features_queue *queue; /* NULL: rows are read when they are asked for */
	struct smalti_features_source looked_up;
};

void smalti_features_defaults(struct smalti_features_options *options)
{
	*options = (struct smalti_features_options){.parts = 1};
}

static int check_options(const struct smalti_features_options *options, struct smalti_error *error)
{
	enum { AHEAD_MAX = 1 << 20 };
	if (options->parts < 1 || options->part < 0 || options->part >= options->parts)
		return smalti_fail(error, SMALTI_EINVAL,
				   "part %" PRId64 " of %" PRId64 " parts of the features", options->part,
				   options->parts);
	if (options->buffer < 0 || options->skip < 0)
		return smalti_fail(error, SMALTI_EINVAL, "a negative number of rows to shuffle or to skip");
	if (options->prefetch < 0 || options->prefetch > AHEAD_MAX)
		return smalti_fail(error, SMALTI_EINVAL,
				   "0 to %d rows to read ahead were expected, found %" PRId64, AHEAD_MAX,
				   options->prefetch);
	return 0;
}

static int open_source(struct smalti_features *features, const struct smalti_features_options *options,
		       struct smalti_error *error)
{
	struct smalti_features_source *source = &features->source;
	source->sets = features->looked_up.sets = &features->set;
	source->set_count = features->looked_up.set_count = 1;
	source->complete = options->complete;
	source->order =
	    smalti_features_order_open(options, features->set.rows, features->set.shards.count, error);
	if (!source->order || skip_rows(source, options->skip, error) < 0)
		return -1;
	if (options->prefetch == 0)
		return 0;
	features->queue = smalti_features_queue_open(source, options->prefetch, error);
	return features->queue ? 0 : -1;
}

struct smalti_features *smalti_features_open(const char *directory,
					     const struct smalti_features_options *options,
					     struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_features_options defaults;
	smalti_features_defaults(&defaults);
	options = options ? options : &defaults;
	if (smalti_check_text(directory, "directory of features", error) < 0 ||
	    check_options(options, error) < 0)
		return NULL;
	struct smalti_features *features = smalti_calloc(1, sizeof(*features), error);
	if (!features)
		return NULL;
	if (smalti_features_set_open(&features->set, directory, error) == 0 &&
	    open_source(features, options, error) == 0)
		return features;
	smalti_features_close(features);
	return NULL;
}

static int wants_none(void *user, const struct smalti_features_row *head, struct smalti_error *error)
{
	(void)user, (void)head, (void)error;
	return 0;
}

struct smalti_features *smalti_features_open_heads(const char *directory, struct smalti_error *error)
{
	struct smalti_features *features = smalti_features_open(directory, NULL, error);
	if (features)
		features->source.wants = wants_none;
	return features;
}

void smalti_features_close(struct smalti_features *features)
{
	if (!features)
		return;
	smalti_features_queue_close(features->queue);
	smalti_features_shards_close(&features->source.shards);
	smalti_features_shards_close(&features->looked_up.shards);
	smalti_features_order_close(features->source.order);
	smalti_features_set_close(&features->set);
	free(features);
}

void smalti_features_info(const struct smalti_features *features, struct smalti_features_info *info)
{
	static const struct smalti_shard_schema none = {.provenance = "{}"};
	const struct smalti_shard *model = features->set.model;
	const struct smalti_shard_schema *schema = model ? smalti_shard_info(model)->schema : &none;
	*info = (struct smalti_features_info){
	    .rows = features->set.row_count,
	    .type = (enum smalti_features_type)schema->dtype,
	    .caption_count = schema->caption_count,
	    .text_width = schema->text_width,
	    .max_tokens = schema->max_tokens,
	    .latent_channels = schema->latent_channels,
	    .image_size = schema->image_size,
	    .scaling_factor = schema->scaling_factor,
	    .provenance = schema->provenance,
	};
	for (int i = 0; i < schema->caption_count; i++)
		info->captions[i] = schema->captions[i];
}

static int check_reader(const struct smalti_features *features, const struct smalti_features_row *row,
			struct smalti_error *error)
{
	return smalti_check_given(features, "reader of features", error) < 0 ||
		       smalti_check_given(row, "row to fill", error) < 0
		   ? -1
		   : 0;
}

int smalti_features_next(struct smalti_features *features, struct smalti_features_row *row,
			 struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (check_reader(features, row, error) < 0)
		return -1;
	if (features->queue)
		return smalti_features_queue_next(features->queue, row, error);
	return smalti_features_source_next(&features->source, row, error);
}

int smalti_features_get(struct smalti_features *features, int64_t index, struct smalti_features_row *row,
			struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (check_reader(features, row, error) < 0)
		return -1;
	return smalti_features_source_get(&features->looked_up, index, row, error);
}
