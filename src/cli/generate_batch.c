/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate_batch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/signals.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An image that is being generated. */
struct image {
	struct smalti_generation *generation;
	struct smalti_image_file *file;
	char id[sizeof(((struct smalti_item *)0)->id)];
	uint64_t seed;
	int64_t width, height, image;
	struct smalti_unread unread;
	double began;
};

static void free_image(struct image *work)
{
	smalti_unread_free(&work->unread);
	free(work);
}

static int on_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		   struct smalti_error *error)
{
	return smalti_image_file_rows(((struct image *)user)->file, first, count, rgb, error);
}

static int on_latents(void *user, const int64_t shape[3], const float *values, struct smalti_error *error)
{
	return smalti_image_file_latents(((struct image *)user)->file, shape, values, error);
}

static void on_done(void *user, int status, const struct smalti_error *cause)
{
	struct image *work = user;
	struct smalti_error error = *cause;
	char *path = strdup(smalti_image_file_path(work->file));
	if (status == 0)
		status = smalti_image_file_commit(work->file, &error);
	else
		smalti_image_file_abort(work->file);
	if (status == 0 || error.code != SMALTI_ECANCELLED) {
		const struct smalti_outcome outcome = {.id = work->id,
						       .file = path ? path : "",
						       .status = status ? SMALTI_FAILED : SMALTI_MADE,
						       .error = status ? &error : NULL,
						       .seed = work->seed,
						       .width = work->width,
						       .height = work->height,
						       .image = work->image,
						       .unread = &work->unread,
						       .seconds = smalti_now() - work->began,
						       .images = 1};
		smalti_report_add(work->generation->report, &outcome);
	} else {
		work->generation->stopped = true;
	}
	free(path);
	free_image(work);
}

static void report_item(const struct smalti_generation *generation, const struct smalti_item *item,
			const char *file, int64_t image, int64_t images, const struct smalti_error *error)
{
	const struct smalti_outcome outcome = {.id = item->id,
					       .file = file,
					       .status = error ? SMALTI_FAILED : SMALTI_SKIPPED,
					       .error = error,
					       .seed = item->request.seed,
					       .width = item->request.width,
					       .height = item->request.height,
					       .image = image,
					       .images = images};
	smalti_report_add(generation->report, &outcome);
}

/* Names and metadata of an image. */
static struct smalti_image_file *plan_file(const struct smalti_generation *generation,
					   const struct smalti_item *item, int64_t image,
					   struct smalti_error *error)
{
	const struct smalti_request *request = &item->request;
	char *path = smalti_output_image(generation->output, item->id, image, request->images, error);
	if (!path)
		return NULL;
	char *latents = generation->save_latents ? smalti_output_latents(path, error) : NULL;
	char *parameters = smalti_image_parameters(request, image, &generation->origin, error);
	if (parameters && (latents || !generation->save_latents))
		return smalti_image_file_new(path, latents, parameters, request->width, request->height,
					     error);
	free(path);
	free(latents);
	free(parameters);
	return NULL;
}

enum { EXCERPT = 120 };

/* The beginning of a text, on one line. */
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

static void warn(const struct smalti_generation *generation, const struct smalti_item *item,
		 struct smalti_error *warning)
{
	smalti_source_add_context(generation->source, item, warning);
	smalti_report_warning(generation->report, warning);
}

/* Once per prompt, with the first image that is made of it. */
static void warn_unread(const struct smalti_generation *generation, struct smalti_item *item,
			const struct smalti_unread *unread)
{
	struct smalti_error truncated = SMALTI_NO_ERROR, unknown = SMALTI_NO_ERROR;
	struct smalti_model_info info;
	char words[EXCERPT + 4];
	if (unread->truncated && !item->warned) {
		smalti_model_info(generation->model, &info);
		excerpt(unread->truncated, words);
		smalti_fail(&truncated, SMALTI_EINVAL,
			    "only the first %" PRId64
			    " tokens of the prompt are read, which leaves out \"%s\"",
			    info.max_tokens - 1, words);
		warn(generation, item, &truncated);
	}
	if (unread->unknown && !item->warned) {
		smalti_fail(&unknown, SMALTI_EINVAL, "words that the model was not trained on: %s",
			    unread->unknown);
		warn(generation, item, &unknown);
	}
	item->warned = true;
}

static int submit(struct smalti_generation *generation, struct smalti_batch *batch, struct smalti_item *item,
		  struct smalti_plan *plan, int64_t image, struct smalti_image_file *file,
		  struct smalti_error *error)
{
	struct image *work = smalti_calloc(1, sizeof(*work), error);
	if (!work)
		return -1;
	*work = (struct image){.generation = generation,
			       .file = file,
			       .seed = item->request.seed,
			       .width = item->request.width,
			       .height = item->request.height,
			       .image = image,
			       .began = smalti_now()};
	memcpy(work->id, item->id, sizeof(work->id));
	const struct smalti_image_callbacks callbacks = {
	    .user = work,
	    .rows = on_rows,
	    .latents = smalti_image_file_keeps_latents(file) ? on_latents : NULL,
	    .done = on_done};
	if (smalti_prompt_unread(generation->model, item->request.prompt, item->request.cleaning,
				 &work->unread, error) == 0) {
		warn_unread(generation, item, &work->unread);
		if (smalti_batch_submit(batch, plan, image, &callbacks, error) == 0)
			return 0;
	}
	free_image(work);
	return -1;
}

static int make_image(struct smalti_generation *generation, struct smalti_batch *batch,
		      struct smalti_item *item, struct smalti_plan *plan, int64_t image,
		      struct smalti_error *error)
{
	struct smalti_image_file *file = plan_file(generation, item, image, error);
	if (!file)
		return -1;
	const int exists = generation->resume ? smalti_image_file_exists(file, error) : 0;
	if (exists > 0) {
		report_item(generation, item, smalti_image_file_path(file), image, 1, NULL);
		smalti_image_file_abort(file);
		return 0;
	}
	if (exists == 0 && submit(generation, batch, item, plan, image, file, error) == 0)
		return 0;
	smalti_image_file_abort(file);
	return -1;
}

/* Whether to begin nothing new. */
static bool ends(const struct smalti_generation *generation)
{
	return smalti_signals_caught() || generation->report->broken;
}

static struct smalti_plan *resolve(const struct smalti_generation *generation, struct smalti_request *request,
				   struct smalti_error *error)
{
	struct smalti_model_info info;
	smalti_model_info(generation->model, &info);
	if (generation->start && smalti_start_apply(generation->start, &info, request, error) < 0)
		return NULL;
	return smalti_request_resolve(generation->model, request, error);
}

static void make_images(struct smalti_generation *generation, struct smalti_batch *batch,
			struct smalti_item *item)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t images = item->request.images;
	int64_t image = 0;
	struct smalti_plan *plan = resolve(generation, &item->request, &error);
	int status = plan ? 0 : -1;
	if (plan)
		status = smalti_output_claim(generation->output, item->id, images, &error);
	while (status == 0 && image < images && !ends(generation)) {
		status = make_image(generation, batch, item, plan, image, &error);
		image += status == 0;
	}
	smalti_plan_free(plan);
	if (status < 0 && error.code == SMALTI_ECANCELLED) {
		generation->stopped = true;
	} else if (status < 0) {
		smalti_source_add_context(generation->source, item, &error);
		report_item(generation, item, NULL, image, images - image, &error);
	} else if (image < images) {
		generation->stopped = true;
	}
}

static void make_all(struct smalti_generation *generation, struct smalti_batch *batch)
{
	enum smalti_prompts_status status = SMALTI_PROMPTS_LINE;
	int64_t items = 0;
	while (status > SMALTI_PROMPTS_END && !generation->stopped) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_item item;
		if (smalti_source_waits(generation->source))
			smalti_batch_wait(batch); /* an image that is ready does not wait for a prompt */
		status = smalti_source_next(generation->source, &item, &error);
		items += status != SMALTI_PROMPTS_END;
		const bool more =
		    status != SMALTI_PROMPTS_END || smalti_source_images(generation->source) < 0;
		if (more && ends(generation))
			generation->stopped = true;
		else if (status == SMALTI_PROMPTS_LINE)
			make_images(generation, batch, &item);
		else if (status != SMALTI_PROMPTS_END)
			report_item(generation, &item, NULL, 0, 1, &error);
		smalti_prompt_line_free(&item.line);
	}
	if (items == 0 && !generation->stopped) {
		struct smalti_error error = SMALTI_NO_ERROR;
		smalti_fail(&error, SMALTI_EINVAL, "%s: no prompts in it",
			    smalti_source_name(generation->source));
		smalti_report_error(generation->report, &error);
		generation->report->failed++;
	}
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
	smalti_batch_set_callback(batch, smalti_report_watch, generation->report);
	make_all(generation, batch);
	smalti_batch_wait(batch);
	smalti_signals_second(NULL, NULL);
	smalti_batch_close(batch);
	return 0;
}
