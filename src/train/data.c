/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data.h"
#include "shard/layout.h"
#include "train/data_sets.h"
#include "train/dealing.h"

struct smalti_training_data {
	const struct smalti_training_data_options *options;
	uint64_t seed;
	int64_t batch, ahead;
	struct smalti_dealing dealing;
	int64_t found_damaged; /* the row whose damage the other ranks have to hear of; -1: none */
	struct smalti_training_sets sets;
	struct smalti_features_source source, looked_up;
	struct smalti_features_queue *queue;
	int captions[SMALTI_FEATURES_CAPTIONS_MAX];  /* the wanted ones, by their index in a row */
	double limits[SMALTI_FEATURES_CAPTIONS_MAX]; /* a draw of [0, 1) below it takes a caption */
	int caption_count;
	struct smalti_data_position position;
	int64_t usable;                         /* samples of this epoch since it was begun here */
	struct smalti_training_sample *waiting; /* in the order in which they were read */
	int64_t waiting_count;
	void (*damaged)(void *user, const char *message);
	void *user;
};

void smalti_training_sample_free(struct smalti_training_sample *sample)
{
	free(sample->moments);
	sample->moments = NULL;
}

const struct smalti_shard_schema *smalti_training_data_schema(const struct smalti_training_data *data)
{
	return smalti_training_sets_schema(&data->sets);
}

struct smalti_shard_extent smalti_training_data_extent(const struct smalti_training_data *data)
{
	return smalti_training_sets_extent(&data->sets);
}

cJSON *smalti_training_data_identity(const struct smalti_training_data *data)
{
	return cJSON_Duplicate(data->sets.identity, true);
}

static int caption_named(const struct smalti_training_data *data, const char *name,
			 struct smalti_error *error)
{
	const struct smalti_shard_schema *schema = smalti_training_data_schema(data);
	char known[512] = "";
	for (int i = 0; i < schema->caption_count; i++) {
		if (strcmp(schema->captions[i], name) == 0)
			return i;
		smalti_append(known, sizeof(known), ", ", "%s", schema->captions[i]);
	}
	return smalti_fail(error, SMALTI_EINVAL, "%s: has no caption '%s': its captions are %s",
			   data->sets.list->directory, name, known);
}

static int choose_captions(struct smalti_training_data *data, struct smalti_error *error)
{
	const struct smalti_training_data_options *o = data->options;
	const struct smalti_shard_schema *schema = smalti_training_data_schema(data);
	double sum = 0, below = 0;
	data->caption_count = o->caption_count ? o->caption_count : schema->caption_count;
	for (int i = 0; i < data->caption_count; i++) {
		data->captions[i] = o->caption_count ? caption_named(data, o->captions[i], error) : i;
		if (data->captions[i] < 0)
			return -1;
		sum += o->caption_count ? o->weights[i] : 1;
	}
	for (int i = 0; i < data->caption_count; i++) {
		below += (o->caption_count ? o->weights[i] : 1) / sum;
		data->limits[i] = below;
	}
	return 0;
}

static void close_order(struct smalti_training_data *data)
{
	smalti_features_queue_close(data->queue);
	smalti_features_order_close(data->source.order);
	data->queue = NULL;
	data->source.order = NULL;
}

/* Opens the position's epoch, behind the read rows. */
static int open_order(struct smalti_training_data *data, struct smalti_error *error)
{
	const struct smalti_features_options options = {.shuffled = true,
							.seed = data->seed,
							.epoch = (uint64_t)data->position.epoch,
							.buffer = data->options->buffer,
							.parts = 1};
	close_order(data);
	data->usable = 0;
	data->source.order =
	    smalti_features_order_open(&options, data->sets.rows, data->sets.shard_count, error);
	if (!data->source.order)
		return -1;
	smalti_features_order_skip(data->source.order, data->position.rows);
	data->queue = smalti_features_queue_open(&data->source, data->ahead, error);
	return data->queue ? 0 : -1;
}

int64_t smalti_training_read_ahead(const struct smalti_train_options *options)
{
	return options->data.prefetch ? options->data.prefetch : options->batch;
}

struct smalti_training_data *smalti_training_data_open(const struct smalti_train_options *options,
						       void (*damaged)(void *user, const char *message),
						       void *user, struct smalti_error *error)
{
	struct smalti_training_data *data = smalti_calloc(1, sizeof(*data), error);
	if (!data)
		return NULL;
	data->options = &options->data;
	data->found_damaged = -1;
	data->seed = options->seed;
	data->batch = options->batch;
	data->ahead = smalti_training_read_ahead(options);
	data->damaged = damaged;
	data->user = user;
	if (smalti_training_sets_open(&data->sets, options->data.directories, options->data.directory_count,
				      error) < 0 ||
	    choose_captions(data, error) < 0) {
		smalti_training_data_close(data);
		return NULL;
	}
	data->source.sets = data->looked_up.sets = data->sets.list;
	data->source.set_count = data->looked_up.set_count = data->sets.count;
	return data;
}

static bool is_usable(const struct smalti_training_data *data, const struct smalti_features_row *row)
{
	bool all = row->image.latent_height > 0;
	for (int i = 0; i < data->caption_count; i++)
		all = all && row->texts[data->captions[i]].tokens > 0;
	return all;
}

static int wants(void *user, const struct smalti_features_row *head, struct smalti_error *error)
{
	struct smalti_training_data *data = user;
	return smalti_dealing_take(&data->dealing, head, is_usable(data, head), error);
}

int smalti_training_data_deal(struct smalti_training_data *data, const bool *own, bool spare,
			      struct smalti_error *error)
{
	data->source.wants = data->looked_up.wants = wants;
	data->source.user = data->looked_up.user = data;
	return smalti_dealing_open(&data->dealing, data->options->bucketing, data->batch, own, spare, error);
}

int64_t smalti_training_data_damaged(const struct smalti_training_data *data)
{
	return data->found_damaged;
}

int smalti_training_data_note(struct smalti_training_data *data, int64_t index, const char *cause,
			      struct smalti_error *error)
{
	close_order(data);
	return smalti_dealing_note(&data->dealing, index, cause, error);
}

static void forget_waiting(struct smalti_training_data *data)
{
	for (int64_t i = 0; i < data->waiting_count; i++)
		smalti_training_sample_free(&data->waiting[i]);
	data->waiting_count = 0;
}

void smalti_training_data_close(struct smalti_training_data *data)
{
	if (!data)
		return;
	close_order(data);
	forget_waiting(data);
	smalti_dealing_close(&data->dealing);
	smalti_features_shards_close(&data->source.shards);
	smalti_features_shards_close(&data->looked_up.shards);
	smalti_training_sets_close(&data->sets);
	free(data->waiting);
	free(data);
}

static const struct smalti_features_text *chosen_caption(const struct smalti_training_data *data,
							 const struct smalti_features_row *row, float draw)
{
	int i = 0;
	while (i < data->caption_count - 1 && (double)draw >= data->limits[i])
		i++;
	return &row->texts[data->captions[i]];
}

/* Copies a row's values into the sample's own memory. */
static int keep(const struct smalti_training_data *data, const struct smalti_features_row *row,
		const struct smalti_features_text *text, struct smalti_training_sample *sample,
		struct smalti_error *error)
{
	enum { ALIGNMENT = 64 };
	const struct smalti_shard_schema *schema = smalti_training_data_schema(data);
	const struct smalti_features_image *image = &row->image;
	if (image->latent_height % 2 || image->latent_width % 2)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "item %" PRId64 " (%s): its latents have %" PRId64 " rows and %" PRId64
				   " columns; the transformer needs even numbers of them",
				   row->index, row->key, image->latent_height, image->latent_width);
	sample->height = image->latent_height;
	sample->width = image->latent_width;
	sample->ratio = image->ratio;
	sample->original_height = image->height;
	sample->original_width = image->width;
	int64_t bytes = 0, caption = 0;
	smalti_shard_image_bytes(schema, image, &bytes);
	sample->tokens = text->tokens;
	if (!image->values)
		return 0;
	if (!sample->dropped)
		smalti_shard_text_bytes(schema, text, &caption);
	const int64_t first = smalti_round_up(bytes, ALIGNMENT);
	char *memory = smalti_aligned_alloc(first + caption, 1, error);
	if (!memory)
		return -1;
	memcpy(memory, image->values, (size_t)bytes);
	if (caption)
		memcpy(memory + first, text->values, (size_t)caption);
	sample->moments = memory;
	sample->caption = caption ? memory + first : NULL;
	return 0;
}

static int add_sample(struct smalti_training_data *data, int64_t epoch, const struct smalti_features_row *row,
		      struct smalti_error *error)
{
	const uint32_t seed =
	    smalti_stream_seed(data->seed, SMALTI_STREAM_SAMPLE, (uint64_t)epoch, (uint64_t)row->index);
	struct smalti_training_sample sample = {
	    .epoch = epoch, .index = row->index, .seed = seed, .draws = smalti_draw_sample(seed)};
	sample.dropped = (double)sample.draws.drop < data->options->drop;
	if (smalti_grow(&data->waiting, data->waiting_count, sizeof(*data->waiting), error) < 0 ||
	    keep(data, row, chosen_caption(data, row, sample.draws.caption), &sample, error) < 0)
		return -1;
	data->waiting[data->waiting_count++] = sample;
	return 0;
}

static int begin_next_epoch(struct smalti_training_data *data, struct smalti_error *error)
{
	if (data->usable == 0 && data->position.rows > 0)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "%s: no item has the features of its image and of all captions that are wanted",
		    data->sets.list->directory);
	data->position.epoch++;
	data->position.rows = 0;
	return open_order(data, error);
}

/* Leaves out an unreadable row, or refuses it. */
static int leave_out(struct smalti_training_data *data, int64_t index, const struct smalti_error *cause,
		     struct smalti_error *error)
{
	if (data->options->damage == SMALTI_DAMAGE_REFUSE)
		return smalti_fail(error, cause->code,
				   "%s: extract it again, or have it left out by --damaged skip",
				   cause->message);
	if (data->dealing.own) {
		data->found_damaged = index;
		return smalti_pass(error, cause);
	}
	data->damaged(data->user, cause->message);
	return 0;
}

/* Tells of a row that another rank found damaged, once in an epoch: its batch may be read several times. */
static void tell_damage(const struct smalti_training_data *data, struct smalti_damaged_row *row)
{
	if (row->told <= data->position.epoch)
		data->damaged(data->user, row->cause);
	row->told = data->position.epoch + 1;
}

/* Reads one row, or begins the next epoch. A usable row then waits. */
static int read_row(struct smalti_training_data *data, struct smalti_error *error)
{
	struct smalti_features_row row;
	struct smalti_error cause = SMALTI_NO_ERROR;
	const int found = smalti_features_queue_next(data->queue, &row, &cause);
	if (found == 0)
		return begin_next_epoch(data, error);
	if (found < 0 && !smalti_is_of_input(cause.code))
		return smalti_pass(error, &cause);
	data->position.rows++;
	struct smalti_damaged_row *known = smalti_dealing_damage(&data->dealing, row.index);
	if (known || found < 0)
		data->position.damaged++;
	if (known)
		tell_damage(data, known);
	else if (found < 0)
		return leave_out(data, row.index, &cause, error);
	if (known || !is_usable(data, &row))
		return 0;
	data->usable++;
	return add_sample(data, data->position.epoch, &row, error);
}

static bool same_bucket(const struct smalti_training_data *data, const struct smalti_training_sample *a,
			const struct smalti_training_sample *b)
{
	return data->options->bucketing == SMALTI_BUCKET_NONE ||
	       (a->height == b->height && a->width == b->width);
}

/* Takes a full batch from a bucket. Only the bucket of the last sample can be full. */
static bool take_batch(struct smalti_training_data *data, struct smalti_training_sample *samples)
{
	int64_t full = 0, left = 0, taken = 0;
	if (data->waiting_count == 0)
		return false;
	const struct smalti_training_sample last = data->waiting[data->waiting_count - 1];
	for (int64_t i = 0; i < data->waiting_count; i++)
		full += same_bucket(data, &data->waiting[i], &last);
	if (full < data->batch)
		return false;
	for (int64_t i = 0; i < data->waiting_count; i++)
		if (same_bucket(data, &data->waiting[i], &last))
			samples[taken++] = data->waiting[i];
		else
			data->waiting[left++] = data->waiting[i];
	data->waiting_count = left;
	return true;
}

int smalti_training_data_next(struct smalti_training_data *data, struct smalti_training_sample *samples,
			      struct smalti_error *error)
{
	data->found_damaged = -1;
	if (!data->queue && open_order(data, error) < 0)
		return -1;
	do {
		if (read_row(data, error) < 0)
			return -1;
	} while (!take_batch(data, samples));
	return 0;
}

int smalti_training_data_position(const struct smalti_training_data *data,
				  struct smalti_data_position *position, struct smalti_error *error)
{
	*position = data->position;
	position->waiting_count = data->waiting_count;
	position->waiting = smalti_calloc(data->waiting_count + 1, sizeof(*position->waiting), error);
	if (!position->waiting)
		return -1;
	for (int64_t i = 0; i < data->waiting_count; i++)
		position->waiting[i] =
		    (struct smalti_waiting_item){data->waiting[i].epoch, data->waiting[i].index};
	return 0;
}

int smalti_training_data_seek(struct smalti_training_data *data, const struct smalti_data_position *position,
			      struct smalti_error *error)
{
	close_order(data);
	forget_waiting(data);
	smalti_dealing_reset(&data->dealing);
	for (int64_t i = 0; i < position->waiting_count; i++) {
		const struct smalti_waiting_item *item = &position->waiting[i];
		struct smalti_features_row row;
		if (smalti_features_source_get(&data->looked_up, item->index, &row, error) < 0 ||
		    add_sample(data, item->epoch, &row, error) < 0)
			return -1;
	}
	data->position = *position;
	data->position.waiting = NULL;
	const int status = open_order(data, error);
	data->usable = position->rows; /* of which a batch was made: not all of them were damaged */
	return status;
}

int smalti_training_data_rewind(struct smalti_training_data *data, struct smalti_error *error)
{
	const struct smalti_features_options options = {.parts = 1};
	close_order(data);
	data->source.order =
	    smalti_features_order_open(&options, data->sets.rows, data->sets.shard_count, error);
	if (data->source.order)
		data->queue = smalti_features_queue_open(&data->source, 1, error);
	return data->queue ? 0 : -1;
}

int smalti_training_data_item(struct smalti_training_data *data, struct smalti_training_sample *sample,
			      struct smalti_error *error)
{
	struct smalti_features_row row;
	struct smalti_error cause = SMALTI_NO_ERROR;
	int found;
	while ((found = smalti_features_queue_next(data->queue, &row, &cause)) != 0) {
		if (found < 0 && !smalti_is_of_input(cause.code))
			return smalti_pass(error, &cause);
		if (found < 0 && leave_out(data, row.index, &cause, error) < 0)
			return -1;
		if (found > 0 && is_usable(data, &row))
			break;
		cause = (struct smalti_error)SMALTI_NO_ERROR;
	}
	if (found == 0)
		return 0;
	*sample = (struct smalti_training_sample){.index = row.index};
	return keep(data, &row, &row.texts[data->captions[0]], sample, error) < 0 ? -1 : 1;
}
