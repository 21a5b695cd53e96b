/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "extract/window.h"
#include "shard/deflate.h"

enum { SAMPLE_BYTES = 1 << 20, WORTH_PERCENT = 80 };

struct sample {
	unsigned char *bytes;
	size_t count;
};

static void add_sample(struct sample *sample, const void *values, int64_t count, int64_t size)
{
	const size_t left = SAMPLE_BYTES - sample->count;
	const size_t bytes = (size_t)(count * size) < left ? (size_t)(count * size) : left;
	if (values)
		memcpy(sample->bytes + sample->count, values, bytes);
	sample->count += values ? bytes : 0;
}

static void fill_sample(struct sample *sample, const struct smalti_shard_schema *schema,
			const struct smalti_window *window)
{
	const int64_t size = smalti_dtype_bytes(schema->dtype);
	for (int64_t i = 0; i < window->count && sample->count < SAMPLE_BYTES; i++) {
		const struct smalti_extract_item *item = &window->items[i];
		for (int k = 0; k < schema->caption_count; k++)
			add_sample(sample, item->row.texts[k].values,
				   item->row.texts[k].tokens * schema->text_width, size);
		add_sample(sample, item->row.image.values,
			   2 * schema->latent_channels * item->row.image.latent_height *
			       item->row.image.latent_width,
			   size);
	}
}

static bool shrinks(const struct sample *sample, int64_t size)
{
	struct smalti_error ignored = SMALTI_NO_ERROR;
	struct smalti_deflated deflated;
	struct smalti_deflater deflater = {0};
	const int64_t count = (int64_t)sample->count;
	const bool worth = smalti_deflate(&deflater, sample->bytes, count, size, &deflated, &ignored) == 0 &&
			   deflated.bytes * 100 <= count * WORTH_PERCENT;
	smalti_deflater_free(&deflater);
	return worth;
}

/* Tells whether to compress the values of a shard that begins with this window. If the option asks for it,
 * that is measured: the low bits of features are noise that no method makes smaller, and rows without
 * compression can be mapped. */
static bool choose_compression(enum smalti_compression compression, const struct smalti_shard_schema *schema,
			       const struct smalti_window *window)
{
	if (compression != SMALTI_COMPRESS_AUTO)
		return compression == SMALTI_COMPRESS_ALWAYS;
	struct sample sample = {.bytes = malloc(SAMPLE_BYTES)};
	if (sample.bytes)
		fill_sample(&sample, schema, window);
	const bool worth = sample.count && shrinks(&sample, smalti_dtype_bytes(schema->dtype));
	free(sample.bytes);
	return worth;
}

enum { AWAIT_NANOSECONDS = 200000000 };

/* The shard that is being written. */
struct open_shard {
	struct smalti_range range;
	struct smalti_shard_writer *file; /* NULL: no shard is open */
	struct smalti_shard *old;         /* that it replaces; NULL: none */
	struct smalti_shard_timing timing;
	int64_t rows, bytes; /* bytes: of values before compression */
};

struct smalti_row_writer {
	struct smalti_store *store;
	struct smalti_shard_schema schema;
	enum smalti_compression compression;
	struct smalti_rate *rate; /* of writing */
	struct open_shard shard;  /* only the thread uses it */
	pthread_t thread;
	pthread_mutex_t mutex; /* guards what follows, and `done` of windows */
	pthread_cond_t changed, written;
	struct smalti_window *first, **last;
	bool ends;
	struct smalti_row_writer_state state;
};

static int begin_shard(struct smalti_row_writer *writer, const struct smalti_window *window,
		       struct smalti_error *error)
{
	struct smalti_shard_schema schema = writer->schema;
	schema.compress = choose_compression(writer->compression, &schema, window);
	writer->shard =
	    (struct open_shard){.range = window->range, .timing = {.began = window->timing.began}};
	if (window->old) {
		writer->shard.old = smalti_shard_open(window->old, error);
		if (!writer->shard.old)
			return -1;
	}
	writer->shard.file = smalti_store_begin(writer->store, &window->range, &schema, error);
	if (!writer->shard.file)
		return -1;
	smalti_shard_meter(writer->shard.file, writer->rate);
	return 0;
}

/* Ends a shard, and gives its claim back in any case. */
static int end_shard(struct smalti_row_writer *writer, struct smalti_error *error)
{
	struct open_shard *shard = &writer->shard;
	bool lost = false;
	shard->timing.ended = smalti_wall_clock();
	const int status =
	    smalti_store_commit(writer->store, &shard->range, shard->file, &shard->timing, &lost, error);
	smalti_rate_await(writer->rate);
	smalti_shard_close(shard->old);
	if (status == 0 && !lost) {
		HOLD_MUTEX(&writer->mutex);
		writer->state.written += shard->rows;
		writer->state.bytes += shard->bytes;
	}
	*shard = (struct open_shard){0};
	return status;
}

static void abandon_shard(struct smalti_row_writer *writer)
{
	struct open_shard *shard = &writer->shard;
	if (shard->file)
		smalti_store_abandon(writer->store, &shard->range, shard->file);
	smalti_shard_close(shard->old);
	*shard = (struct open_shard){0};
}

static int write_failures(struct smalti_shard_writer *file, const struct smalti_extract_item *item,
			  struct smalti_error *error)
{
	for (int i = 0; i < item->failure_count; i++) {
		const char *reason = item->failures[i].reason;
		const struct smalti_shard_failure failure = {.index = item->row.index,
							     .key = item->row.key,
							     .stage = item->failures[i].stage,
							     .reason =
								 reason ? reason : "no memory to say why"};
		if (smalti_shard_fail(file, &failure, error) < 0)
			return -1;
	}
	return 0;
}

static int64_t value_bytes(const struct smalti_shard_schema *schema, const struct smalti_features_row *row)
{
	int64_t values = 2 * schema->latent_channels * row->image.latent_height * row->image.latent_width;
	for (int i = 0; i < schema->caption_count; i++)
		values += row->texts[i].tokens * schema->text_width;
	return values * smalti_dtype_bytes(schema->dtype);
}

static int write_item(struct open_shard *shard, const struct smalti_shard_schema *schema,
		      const struct smalti_extract_item *item, struct smalti_error *error)
{
	struct smalti_features_row row = item->row;
	if (item->kept && smalti_shard_row(shard->old, item->row.index, &row, error) < 0)
		return -1;
	if (smalti_shard_append(shard->file, &row, error) < 0)
		return -1;
	shard->rows++;
	shard->bytes += value_bytes(schema, &row);
	return write_failures(shard->file, item, error);
}

static void add_timing(struct smalti_shard_timing *sum, const struct smalti_shard_timing *more)
{
	sum->text_seconds += more->text_seconds;
	sum->image_seconds += more->image_seconds;
	sum->tokens += more->tokens;
	sum->pixels += more->pixels;
}

static int write_window(struct smalti_row_writer *writer, const struct smalti_window *window,
			struct smalti_error *error)
{
	struct open_shard *shard = &writer->shard;
	int status = shard->file ? 0 : begin_shard(writer, window, error);
	for (int64_t i = 0; status == 0 && i < window->count; i++) {
		status = write_item(shard, &writer->schema, &window->items[i], error);
		smalti_rate_await(writer->rate);
	}
	add_timing(&shard->timing, &window->timing);
	if (status == 0 && window->last)
		return end_shard(writer, error);
	if (status < 0)
		abandon_shard(writer);
	return status;
}

/* Waits until the oldest window is done and returns it; NULL at the end. */
static struct smalti_window *next_window(struct smalti_row_writer *writer)
{
	HOLD_MUTEX(&writer->mutex);
	while (!(writer->first && writer->first->done) && !writer->ends)
		pthread_cond_wait(&writer->changed, &writer->mutex);
	return writer->first && writer->first->done ? writer->first : NULL;
}

static void remove_first(struct smalti_row_writer *writer, double seconds, const struct smalti_error *error)
{
	struct smalti_window *window = writer->first;
	pthread_mutex_lock(&writer->mutex);
	writer->first = window->next;
	if (!writer->first)
		writer->last = &writer->first;
	writer->state.waiting--;
	writer->state.rows -= window->count;
	writer->state.seconds += seconds;
	if (!writer->state.error.code)
		writer->state.error = *error;
	pthread_cond_signal(&writer->written);
	pthread_mutex_unlock(&writer->mutex);
	smalti_window_free(window);
}

/* Writes windows; after a failure only frees them. */
static void *work(void *user)
{
	struct smalti_row_writer *writer = user;
	struct smalti_error error = SMALTI_NO_ERROR;
	for (struct smalti_window *window; (window = next_window(writer));) {
		const double began = smalti_now();
		if (!error.code)
			write_window(writer, window, &error);
		remove_first(writer, smalti_now() - began, &error);
	}
	if (writer->shard.file && !error.code)
		end_shard(writer, &error);
	HOLD_MUTEX(&writer->mutex);
	if (!writer->state.error.code)
		writer->state.error = error;
	return NULL;
}

struct smalti_row_writer *smalti_row_writer_open(struct smalti_store *store,
						 const struct smalti_shard_schema *schema,
						 enum smalti_compression compression,
						 struct smalti_rate *rate, struct smalti_error *error)
{
	struct smalti_row_writer *writer = smalti_calloc(1, sizeof(*writer), error);
	if (!writer)
		return NULL;
	writer->store = store;
	writer->schema = *schema;
	writer->compression = compression;
	writer->rate = rate;
	writer->last = &writer->first;
	pthread_mutex_init(&writer->mutex, NULL);
	pthread_cond_init(&writer->changed, NULL);
	pthread_cond_init(&writer->written, NULL);
	if (pthread_create(&writer->thread, NULL, work, writer) == 0)
		return writer;
	smalti_fail(error, SMALTI_ENOMEM, "no thread can be started to write shards");
	pthread_cond_destroy(&writer->written);
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->mutex);
	free(writer);
	return NULL;
}

void smalti_row_writer_add(struct smalti_row_writer *writer, struct smalti_window *window)
{
	HOLD_MUTEX(&writer->mutex);
	*writer->last = window;
	writer->last = &window->next;
	writer->state.waiting++;
}

void smalti_row_writer_done(struct smalti_row_writer *writer, struct smalti_window *window)
{
	HOLD_MUTEX(&writer->mutex);
	window->done = true;
	writer->state.rows += window->count;
	pthread_cond_signal(&writer->changed);
}

void smalti_row_writer_state(struct smalti_row_writer *writer, struct smalti_row_writer_state *state)
{
	HOLD_MUTEX(&writer->mutex);
	*state = writer->state;
}

void smalti_row_writer_await(struct smalti_row_writer *writer, int64_t max)
{
	const struct timespec until = smalti_deadline(AWAIT_NANOSECONDS);
	HOLD_MUTEX(&writer->mutex);
	int status = 0;
	while (writer->state.waiting > max && status == 0)
		status = pthread_cond_clockwait(&writer->written, &writer->mutex, CLOCK_MONOTONIC, &until);
}

/* Drops the remaining windows. Their ranges have no owner now, except that of the open shard. */
static void drop_windows(struct smalti_row_writer *writer)
{
	for (struct smalti_window *window = writer->first, *next; window; window = next) {
		next = window->next;
		smalti_window_free(window);
	}
}

int smalti_row_writer_close(struct smalti_row_writer *writer, struct smalti_row_writer_state *state,
			    struct smalti_error *error)
{
	if (!writer)
		return 0;
	pthread_mutex_lock(&writer->mutex);
	writer->ends = true;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->mutex);
	pthread_join(writer->thread, NULL);
	drop_windows(writer);
	*state = writer->state;
	pthread_cond_destroy(&writer->written);
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->mutex);
	free(writer);
	return smalti_pass(error, &state->error);
}
