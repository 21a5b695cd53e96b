/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/window.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <sys/stat.h>

static int open_item(struct smalti_extract_item *item, const struct smalti_dataset_record *record,
		     struct smalti_error *error)
{
	*item = (struct smalti_extract_item){
	    .row = {.index = record->index, .key = smalti_format(error, "%s", record->key)},
	    .offset = record->image.offset,
	    .bytes = record->image.bytes};
	if (record->image.path)
		item->path = smalti_format(error, "%s", record->image.path);
	return item->row.key && (item->path || !record->image.path) ? 0 : -1;
}

void smalti_item_fail(struct smalti_extract_item *item, const char *stage, const char *reason)
{
	if (item->failure_count == SMALTI_ITEM_FAILURES_MAX)
		return;
	item->failures[item->failure_count++] =
	    (struct smalti_item_failure){stage, strndup(reason, strcspn(reason, "\n"))};
}

static void close_item(struct smalti_extract_item *item)
{
	for (int i = 0; i < SMALTI_FEATURES_CAPTIONS_MAX; i++) {
		free((void *)item->row.texts[i].ids);
		free((void *)item->row.texts[i].values);
		free(item->problems[i]);
	}
	for (int i = 0; i < item->failure_count; i++)
		free(item->failures[i].reason);
	smalti_input_image_close(item->input);
	free(item->file);
	free((void *)item->row.image.values);
	free(item->path);
	free((void *)item->row.key);
	*item = (struct smalti_extract_item){0};
}

enum {
	FILE_BYTES_MAX = 64 << 20,   /* of image files */
	LATENT_BYTES_MAX = 64 << 20, /* of images, encoded */
	/* Near the end of the run a window is full with either of these. */
	LAST_IMAGES = 16,
	LAST_TOKENS = 1024
};

/* A window that is being read, and what it holds so far. */
struct reading {
	const struct smalti_extract_parts *parts;
	struct smalti_fetcher *fetcher; /* NULL: images are left out */
	struct smalti_window *window;
	struct smalti_shard *old;
	struct smalti_window_load load;
	int64_t enough; /* items, of a window near the end of the run */
};

int64_t smalti_window_latent_bytes(const struct smalti_extract_parts *parts)
{
	const struct smalti_shard_schema *schema = &parts->schema;
	if (!parts->vae)
		return 0;
	const int64_t side = schema->image_size / smalti_vae_factor(&parts->vae->config);
	return 2 * schema->latent_channels * side * side * smalti_dtype_bytes(schema->dtype);
}

bool smalti_window_is_full(const struct smalti_extract_parts *parts, const struct smalti_window_load *load,
			   int64_t enough)
{
	if (load->items >= enough && (load->tokens >= LAST_TOKENS || load->images >= LAST_IMAGES))
		return true;
	return load->items == SMALTI_WINDOW_ITEMS_MAX || load->tokens >= parts->window_tokens ||
	       load->file_bytes >= FILE_BYTES_MAX ||
	       load->images * smalti_window_latent_bytes(parts) >= LATENT_BYTES_MAX;
}

/* Notes why a part is missing: `what`, and the `remedy`, or the known cause. */
static int fail_missing(struct smalti_extract_item *item, const struct smalti_dataset_record *record,
			const char *stage, const char *what, const char *remedy, struct smalti_error *error)
{
	SCOPED(free)
	char *reason =
	    record->split
		? smalti_format(error,
				"%s; its members are in several places of the tar: pack it with tar "
				"--sort=name",
				what)
		: smalti_format(error, "%s%s%s%s", what, remedy, record->found ? "; found: " : "",
				record->found ? record->found : "");
	if (reason)
		smalti_item_fail(item, stage, reason);
	return reason ? 0 : -1;
}

/* Makes the caption's tokens, or notes why there are none. */
static int tokenize(const struct smalti_extract_parts *parts, const struct smalti_dataset_record *record,
		    int number, struct smalti_extract_item *item, struct smalti_error *error)
{
	const struct smalti_caption_text *caption = &record->captions[number];
	struct smalti_features_text *text = &item->row.texts[number];
	int32_t *ids = NULL;
	struct smalti_error refused = SMALTI_NO_ERROR;
	if (caption->problem) {
		smalti_item_fail(item, "caption", caption->problem);
		return 0;
	}
	if (!caption->text) {
		SCOPED(free)
		char *what = smalti_format(error, "no caption under \"%s\"", parts->options.captions[number]);
		return what ? fail_missing(item, record, "caption", what, "; --caption-key names another key",
					   error)
			    : -1;
	}
	if (!smalti_utf8_valid(caption->text, caption->length)) {
		smalti_item_fail(item, "tokens", "the caption is not valid UTF-8");
		return 0;
	}
	if (smalti_prompt_encoder_tokenize(&parts->text, caption->text, caption->length,
					   parts->options.cleaning, &ids, &text->tokens, &refused) == 0) {
		text->ids = ids;
		return 0;
	}
	text->tokens = 0;
	if (!smalti_is_of_input(refused.code))
		return smalti_pass(error, &refused);
	smalti_item_fail(item, "tokens", refused.message);
	return 0;
}

/* Returns a size that only tells when a window is full. */
static int64_t file_bytes(const struct smalti_extract_item *item)
{
	struct stat info;
	if (item->bytes >= 0)
		return item->bytes;
	return stat(item->path, &info) == 0 ? (int64_t)info.st_size : 0;
}

static int read_parts(struct reading *reading, const struct smalti_dataset_record *record,
		      struct smalti_extract_item *item, struct smalti_error *error)
{
	const struct smalti_extract_parts *parts = reading->parts;
	for (int i = 0; parts->text.model && i < parts->options.caption_count; i++) {
		if (tokenize(parts, record, i, item, error) < 0)
			return -1;
		reading->load.tokens += item->row.texts[i].tokens;
	}
	if (!parts->vae || !reading->fetcher)
		return 0;
	if (!item->path)
		return fail_missing(item, record, "picture", "the list names no image", "", error);
	reading->load.file_bytes += file_bytes(item);
	reading->load.images++;
	smalti_fetcher_add(reading->fetcher, item);
	return 0;
}

/* Tells whether the shard that is made anew has all of the item's features. */
static bool is_whole(const struct smalti_shard *old, int64_t index)
{
	return old && index >= smalti_shard_info(old)->first && index < smalti_shard_info(old)->end &&
	       smalti_shard_row_is_complete(old, index);
}

static int read_item(struct reading *reading, struct smalti_error *error)
{
	struct smalti_dataset_record record;
	struct smalti_error bad = SMALTI_NO_ERROR;
	struct smalti_dataset *dataset = reading->parts->dataset;
	struct smalti_extract_item *item = &reading->window->items[reading->window->count];
	const enum smalti_dataset_status status = smalti_dataset_next(dataset, &record, &bad);
	if (status == SMALTI_DATASET_FAILED)
		return smalti_pass(error, &bad);
	if (status == SMALTI_DATASET_END)
		return smalti_fail(error, SMALTI_ECORRUPT,
				   "%s: has fewer items than at first: it was changed meanwhile",
				   smalti_dataset_info(dataset)->name);
	if (open_item(item, &record, error) < 0) {
		close_item(item);
		return -1;
	}
	reading->load.items = ++reading->window->count;
	if (status == SMALTI_DATASET_BAD) {
		smalti_item_fail(item, "list", bad.message);
		return 0;
	}
	item->kept = is_whole(reading->old, item->row.index);
	return item->kept ? 0 : read_parts(reading, &record, item, error);
}

/* Waits for the items that the fetcher has, and frees the window. */
static void drop(struct smalti_window *window, struct smalti_fetcher *fetcher)
{
	for (int64_t i = 0; window->items && i < window->count; i++)
		if (window->items[i].is_ordered)
			smalti_fetcher_wait(fetcher, &window->items[i]);
	smalti_window_free(window);
}

static int read_items(struct reading *reading, int64_t left, struct smalti_error *error)
{
	const struct smalti_window *window = reading->window;
	reading->old = window->old ? smalti_shard_open(window->old, error) : NULL;
	int status = window->old && !reading->old ? -1 : 0;
	while (status == 0 && window->count < left &&
	       !smalti_window_is_full(reading->parts, &reading->load, reading->enough))
		status = read_item(reading, error);
	smalti_shard_close(reading->old);
	return status;
}

struct smalti_window *smalti_window_read(const struct smalti_extract_parts *parts,
					 struct smalti_fetcher *fetcher, const struct smalti_range *range,
					 bool ends, int64_t first, const char *old,
					 struct smalti_error *error)
{
	const int64_t left = range->end - first;
	struct smalti_window *window = smalti_calloc(1, sizeof(*window), error);
	if (!window)
		return NULL;
	window->range = *range;
	window->first = first;
	window->timing.began = smalti_wall_clock();
	window->items =
	    smalti_calloc(smalti_min(left, SMALTI_WINDOW_ITEMS_MAX), sizeof(*window->items), error);
	if (old)
		window->old = smalti_format(error, "%s", old);
	struct reading reading = {
	    .parts = parts, .fetcher = fetcher, .window = window, .enough = ends ? left / 2 : left};
	if (window->items && (window->old || !old) && read_items(&reading, left, error) == 0) {
		window->last = window->count == left;
		return window;
	}
	drop(window, fetcher);
	return NULL;
}

struct smalti_window *smalti_window_empty(const struct smalti_range *range, int64_t at,
					  struct smalti_error *error)
{
	struct smalti_window *window = smalti_calloc(1, sizeof(*window), error);
	if (window) {
		window->range = *range;
		window->first = at;
		window->last = true;
	}
	return window;
}

void smalti_window_free(struct smalti_window *window)
{
	if (!window)
		return;
	for (int64_t i = 0; window->items && i < window->count; i++)
		close_item(&window->items[i]);
	free(window->items);
	free(window->old);
	free(window);
}
