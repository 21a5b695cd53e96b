/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/json.h"
#include "cli/generate_share.h"
#include "cli/signals.h"

#include <ctype.h>

/* An image that is being generated. */
struct image {
	struct smalti_image_file file; /* first: callbacks are given the image */
	struct smalti_generation *generation;
	struct smalti_generate_part *part; /* of a shared list; else NULL */
	char id[sizeof(((struct smalti_item *)0)->id)];
	uint64_t seed;
	int64_t number;
	struct smalti_unread unread;
	double began;
	cJSON *places;                /* the bytes that came to each; NULL: not known */
	int64_t calls, skipped_calls; /* of a step cache */
};

static void free_image(struct image *image)
{
	cJSON_Delete(image->places);
	smalti_unread_free(&image->unread);
	smalti_image_file_close(&image->file);
	if (image->part)
		image->part->images--;
	free(image);
}

static void stop(struct smalti_generation *generation, const struct smalti_error *cause)
{
	generation->stopped = true;
	generation->cause = *cause;
}

static void add_bytes(cJSON *place, const char *key, const struct smalti_place_bytes *bytes)
{
	const struct {
		const char *key;
		double bytes;
	} kinds[] = {{"keys", bytes->keys},     {"heads", bytes->heads},           {"sums", bytes->sums},
		     {"stream", bytes->stream}, {"modulation", bytes->modulation}, {"halo", bytes->halo}};
	cJSON *object = cJSON_AddObjectToObject(place, key);
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (kinds[i].bytes > 0)
			cJSON_AddNumberToObject(object, kinds[i].key, kinds[i].bytes);
}

static void on_steps(void *user, const struct smalti_step_report *report)
{
	struct image *image = user;
	smalti_image_file_steps(&image->file, report);
	image->calls = report->steps * report->branches;
	for (int64_t i = 0; i < image->calls; i++)
		image->skipped_calls += report->calls[i].skipped;
}

static void on_place(void *user, const struct smalti_transfer_report *report)
{
	struct image *image = user;
	cJSON *place = cJSON_CreateObject();
	smalti_json_add_text(place, "name", report->name);
	add_bytes(place, "planned", &report->planned);
	add_bytes(place, "pass", &report->pass);
	add_bytes(place, "decoding", &report->decoding);
	cJSON_AddNumberToObject(place, "weights", report->weights);
	if (!image->places)
		image->places = cJSON_CreateArray();
	cJSON_AddItemToArray(image->places, place);
}

static void report_image(struct image *image, int status, const struct smalti_error *error)
{
	const struct smalti_image_outcome outcome = {
	    .id = image->id,
	    .file = image->file.path,
	    .status = status ? SMALTI_IMAGE_FAILED : SMALTI_IMAGE_MADE,
	    .error = status ? error : NULL,
	    .seed = image->seed,
	    .width = image->file.width,
	    .height = image->file.height,
	    .image = image->number,
	    .unread = &image->unread,
	    .places = image->places,
	    .calls = image->calls,
	    .skipped_calls = image->skipped_calls,
	    .seconds = smalti_now() - image->began,
	    .images = 1,
	};
	smalti_image_report_add(&image->generation->report, &outcome);
}

/* Puts the image in place. *lost: another process makes it by now. */
static int commit(struct image *image, bool *lost, struct smalti_error *error)
{
	return image->part
		   ? smalti_generate_share_commit(image->generation, image->part, &image->file, lost, error)
		   : smalti_image_file_commit(&image->file, error);
}

static void on_done(void *user, int status, const struct smalti_error *cause)
{
	struct image *image = user;
	struct smalti_error error = *cause;
	bool lost = false;
	if (status == 0)
		status = commit(image, &lost, &error);
	const bool dropped = status && error.code == SMALTI_ECANCELLED;
	if (dropped)
		stop(image->generation, &error);
	else if (!lost)
		report_image(image, status, &error);
	if (image->part) {
		image->part->dropped |= dropped;
		image->part->failed |= status && !dropped;
	}
	free_image(image);
}

static void report_item(struct smalti_generation *generation, const struct smalti_item *item,
			const char *file, int64_t image, int64_t images, const struct smalti_error *error)
{
	const struct smalti_image_outcome outcome = {
	    .id = item->id,
	    .file = file,
	    .status = error ? SMALTI_IMAGE_FAILED : SMALTI_IMAGE_SKIPPED,
	    .error = error,
	    .seed = item->request.seed,
	    .width = item->request.width,
	    .height = item->request.height,
	    .image = image,
	    .images = images,
	};
	smalti_image_report_add(&generation->report, &outcome);
	if (error && generation->share)
		generation->share->part->failed = true;
}

/* Makes its paths and metadata, too. */
static struct image *new_image(struct smalti_generation *generation, const struct smalti_item *item,
			       int64_t number, struct smalti_error *error)
{
	const struct smalti_request *request = &item->request;
	const bool save_latents = generation->options->save_latents;
	struct image *image = smalti_calloc(1, sizeof(*image), error);
	if (!image)
		return NULL;
	struct smalti_image_file *file = &image->file;
	image->generation = generation;
	image->part = generation->share ? generation->share->part : NULL;
	if (image->part)
		image->part->images++;
	image->seed = request->seed;
	image->number = number;
	image->began = smalti_now();
	memcpy(image->id, item->id, sizeof(image->id));
	file->width = request->width;
	file->height = request->height;
	file->path = smalti_output_image(&generation->output, item->id, number, request->images, error);
	if (file->path && save_latents)
		file->latents_path = smalti_output_latents(file->path, error);
	file->parameters = smalti_image_parameters(request, number, &generation->origin, error);
	if (file->path && file->parameters && (file->latents_path || !save_latents))
		return image;
	free_image(image);
	return NULL;
}

enum { EXCERPT = 120 };

/* Copies the beginning of a text, on one line. */
static void excerpt(const char *text, char words[EXCERPT + 4])
{
	size_t length = strlen(text);
	const bool whole = length <= EXCERPT;
	for (length = whole ? length : EXCERPT; !whole && ((unsigned char)text[length] & 0xc0) == 0x80;)
		length--;
	for (size_t i = 0; i < length; i++)
		words[i] = iscntrl((unsigned char)text[i]) ? ' ' : text[i];
	memcpy(words + length, whole ? "" : "...", whole ? 1 : 4);
}

static void warn(struct smalti_generation *generation, const struct smalti_item *item,
		 struct smalti_error *warning)
{
	smalti_source_add_context(&generation->source, item, warning);
	smalti_image_report_warning(&generation->report, warning->message);
}

/* Warns once per prompt, with the first image that is made of it. */
static void warn_unread(struct smalti_generation *generation, struct smalti_item *item,
			const struct smalti_unread *unread)
{
	struct smalti_error truncated = SMALTI_NO_ERROR, unknown = SMALTI_NO_ERROR;
	char words[EXCERPT + 4];
	if (unread->truncated && !item->warned) {
		excerpt(unread->truncated, words);
		smalti_fail(&truncated, SMALTI_EINVAL,
			    "only the first %" PRId64
			    " tokens of the prompt are read, which leaves out \"%s\"",
			    generation->info.max_tokens - 1, words);
		warn(generation, item, &truncated);
	}
	if (unread->unknown && !item->warned) {
		smalti_fail(&unknown, SMALTI_EINVAL, "words that the model was not trained on: %s",
			    unread->unknown);
		warn(generation, item, &unknown);
	}
	item->warned = true;
}

/* Takes the image over, unless it fails. */
static int submit(struct smalti_batch *batch, struct smalti_item *item, struct smalti_plan *plan,
		  struct image *image, struct smalti_error *error)
{
	struct smalti_generation *generation = image->generation;
	const struct smalti_image_callbacks callbacks = {
	    .user = image,
	    .rows = smalti_image_file_rows,
	    .latents = image->file.latents_path ? smalti_image_file_latents : NULL,
	    .steps = on_steps,
	    .place = generation->options->json ? on_place : NULL,
	    .done = on_done};
	if (smalti_prompt_unread(generation->model, item->request.prompt, item->request.cleaning,
				 &image->unread, error) < 0)
		return -1;
	warn_unread(generation, item, &image->unread);
	return smalti_batch_submit(batch, plan, image->number, &callbacks, error);
}

/* Returns 1 if the image is there. What the other lines of a shared list have made is not replaced. */
static int find_image(const struct smalti_generation *generation, const struct image *image,
		      struct smalti_error *error)
{
	if (generation->share)
		return smalti_generate_share_find(&image->file, error);
	if (!generation->options->resume)
		return 0;
	const enum smalti_image_file_state state = smalti_image_file_look(&image->file, error);
	return state == SMALTI_IMAGE_FILE_FOREIGN ? -1 : state == SMALTI_IMAGE_FILE_WHOLE;
}

static int make_image(struct smalti_generation *generation, struct smalti_batch *batch,
		      struct smalti_item *item, struct smalti_plan *plan, int64_t number,
		      struct smalti_error *error)
{
	struct image *image = new_image(generation, item, number, error);
	if (!image)
		return -1;
	const int exists = find_image(generation, image, error);
	if (exists == 0 && submit(batch, item, plan, image, error) == 0)
		return 0;
	if (exists > 0)
		report_item(generation, item, image->file.path, number, 1, NULL);
	free_image(image);
	return exists > 0 ? 0 : -1;
}

bool smalti_generation_ends(const struct smalti_generation *generation)
{
	return smalti_signals_caught() || generation->report.broken;
}

struct smalti_plan *smalti_generation_resolve(struct smalti_generation *generation, struct smalti_item *item,
					      struct smalti_error *error)
{
	const struct smalti_start *start = &generation->start;
	struct smalti_request *request = &item->request;
	if (smalti_generation_read_pictures(generation, item->image, item->mask, request, error) < 0)
		return NULL;
	if (start->values && smalti_start_apply(start, &generation->info, request, error) < 0)
		return NULL;
	struct smalti_plan *plan = smalti_request_resolve(generation->model, request, error);
	if (plan) { /* for the metadata */
		request->strategy = smalti_plan_strategy(plan);
		request->shares = smalti_plan_shares(plan);
		request->lora = smalti_plan_lora(plan);
		request->step_cache = smalti_plan_step_cache(plan);
	}
	return plan;
}

/* Waits for the images so far if the item begins with one of them. */
static void wait_for_pictures(struct smalti_generation *generation, struct smalti_batch *batch,
			      const struct smalti_item *item)
{
	const struct smalti_output *output = &generation->output;
	if ((item->image && smalti_output_has(output, item->image)) ||
	    (item->mask && smalti_output_has(output, item->mask)))
		smalti_batch_wait(batch);
}

static void make_images(struct smalti_generation *generation, struct smalti_batch *batch,
			struct smalti_item *item)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t images = item->request.images;
	int64_t image = 0;
	wait_for_pictures(generation, batch, item);
	struct smalti_plan *plan = smalti_generation_resolve(generation, item, &error);
	int status = plan ? 0 : -1;
	if (plan && !generation->share)
		status = smalti_output_claim(&generation->output, item->id, images, &error);
	while (status == 0 && image < images && !smalti_generation_ends(generation)) {
		status = make_image(generation, batch, item, plan, image, &error);
		image += status == 0;
	}
	smalti_plan_free(plan);
	if (status < 0 && error.code == SMALTI_ECANCELLED) {
		stop(generation, &error);
	} else if (status < 0) {
		smalti_source_add_context(&generation->source, item, &error);
		report_item(generation, item, NULL, image, images - image, &error);
	} else if (image < images) {
		generation->stopped = true;
	}
}

void smalti_generation_make(struct smalti_generation *generation, struct smalti_batch *batch,
			    enum smalti_prompts_status status, struct smalti_item *item,
			    struct smalti_error *error)
{
	if (status == SMALTI_PROMPTS_LINE)
		make_images(generation, batch, item);
	else
		report_item(generation, item, NULL, 0, 1, error);
}

static void make_all(struct smalti_generation *generation, struct smalti_batch *batch)
{
	enum smalti_prompts_status status = SMALTI_PROMPTS_LINE;
	int64_t items = 0;
	while (status > SMALTI_PROMPTS_END && !generation->stopped) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_item item;
		if (generation->source.file && smalti_prompts_waits(generation->source.file))
			smalti_batch_wait(batch); /* an image that is ready does not wait for a prompt */
		status = smalti_source_next(&generation->source, &item, &error);
		items += status != SMALTI_PROMPTS_END;
		const bool more = status != SMALTI_PROMPTS_END || generation->source.images < 0;
		if (more && smalti_generation_ends(generation))
			generation->stopped = true;
		else if (status != SMALTI_PROMPTS_END)
			smalti_generation_make(generation, batch, status, &item, &error);
		smalti_prompt_line_free(&item.line);
	}
	if (items == 0 && !generation->stopped) {
		struct smalti_error error = SMALTI_NO_ERROR;
		smalti_fail(&error, SMALTI_EINVAL, "%s: no prompts in it", generation->source.name);
		smalti_image_report_error(&generation->report, error.message);
		generation->report.failed++;
	}
}

static void on_progress(void *user, const struct smalti_batch_progress *batch)
{
	char detail[SMALTI_PROGRESS_DETAIL] = "";
	if (batch->active && batch->stage == SMALTI_STAGE_TEXT)
		snprintf(detail, sizeof(detail), "reading the prompt");
	else if (batch->active && batch->stage == SMALTI_STAGE_DENOISING)
		snprintf(detail, sizeof(detail), "denoising step %" PRId64 " of %" PRId64, batch->step,
			 batch->steps);
	else if (batch->active)
		snprintf(detail, sizeof(detail), "decoding");
	smalti_image_report_progress(user, batch->images, detail);
}

static void cancel(void *batch)
{
	smalti_batch_cancel(batch);
}

int smalti_generation_run(struct smalti_generation *generation, struct smalti_error *error)
{
	struct smalti_batch *batch = smalti_batch_open(generation->model, error);
	if (!batch)
		return -1;
	smalti_signals_second(cancel, batch);
	smalti_batch_set_callback(batch, on_progress, &generation->report);
	int status = 0;
	if (generation->share)
		status = smalti_generate_share_run(generation, batch, error);
	else
		make_all(generation, batch);
	smalti_batch_wait(batch);
	smalti_signals_second(NULL, NULL);
	smalti_batch_close(batch);
	return status;
}
