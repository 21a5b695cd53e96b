/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/jobs.h"
#include "simulator/case.h"

/* The extraction of a case: items that are alike, in the windows of a real one, without files. */
struct extraction {
	struct smalti_case *c;
	struct smalti_extract_parts parts;
	struct smalti_extract_jobs jobs;
	int64_t tokens;                   /* of each caption */
	struct smalti_input_info picture; /* of each item; zeros: none */
	int64_t unwritten;                /* windows */
};

static int open_parts(struct extraction *e, struct smalti_error *error)
{
	const struct smalti_simulate_options *o = e->c->options;
	const struct smalti_simulated_extraction *extraction = &o->extraction;
	struct smalti_extract_options options;
	smalti_extract_defaults(&options);
	options.model.directory = e->c->directory;
	options.model.precision = (enum smalti_precision)o->precision;
	options.caption_count = 1;
	options.text = extraction->t5 || !extraction->vae;
	options.images = extraction->vae || !extraction->t5;
	options.image_size = extraction->image_size;
	if (smalti_extract_parts_open_models(&e->parts, e->c->session, &options, error) < 0)
		return -1;
	const int64_t max = e->parts.options.max_tokens;
	e->tokens = o->caption_tokens ? o->caption_tokens : smalti_min(SMALTI_CAPTION_TOKENS, max);
	if (!options.text || e->tokens <= max)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "--caption-tokens: expected at most %" PRId64
			   ", which is what the model reads; found %" PRId64,
			   max, e->tokens);
}

/* Sets the pictures, which come to their square bin. A task's bytes are those of the bin's pixels, but what
 * it takes is by the pixels that it decodes. */
static int set_picture(struct extraction *e, struct smalti_error *error)
{
	const struct smalti_request *request = &e->c->options->request;
	struct smalti_bin bin;
	if (!e->parts.vae)
		return 0;
	if (smalti_bins_nearest(e->parts.options.image_size, SMALTI_BINS_TRAINING, 1, 1, &bin, error) < 0)
		return -1;
	e->picture =
	    (struct smalti_input_info){.original_height = request->width ? request->height : bin.height,
				       .original_width = request->width ? request->width : bin.width,
				       .bin = bin,
				       .height = bin.height,
				       .width = bin.width};
	e->c->machine.cpu.pictures *= (double)(bin.height * bin.width) /
				      (double)(e->picture.original_height * e->picture.original_width);
	return smalti_case_precision(e->c, e->parts.vae->compute, error);
}

static void add_item(const struct extraction *e, struct smalti_window_load *load)
{
	load->items++;
	load->tokens += e->parts.text.model ? e->tokens : 0;
	load->images += e->parts.vae != NULL;
}

static int make_item(const struct extraction *e, int64_t index, struct smalti_extract_item *item,
		     struct smalti_error *error)
{
	*item = (struct smalti_extract_item){.row.index = index, .picture = e->picture};
	if (!e->parts.text.model)
		return 0;
	item->row.texts[0].tokens = e->tokens;
	item->row.texts[0].ids = smalti_calloc(e->tokens, sizeof(int32_t), error);
	return item->row.texts[0].ids ? 0 : -1;
}

/* Makes the window of the next items, of which `left` are left. */
static struct smalti_window *make_window(const struct extraction *e, int64_t first, int64_t left,
					 struct smalti_error *error)
{
	const struct smalti_range range = {0, first + left};
	struct smalti_window_load load = {.items = 0};
	struct smalti_window *window = smalti_window_empty(&range, first, error);
	while (load.items < left && !smalti_window_is_full(&e->parts, &load, left / 2))
		add_item(e, &load);
	if (window)
		window->items = smalti_calloc(load.items, sizeof(*window->items), error);
	int status = window && window->items ? 0 : -1;
	for (; status == 0 && window->count < load.items; window->count++)
		status = make_item(e, first + window->count, &window->items[window->count], error);
	if (status == 0)
		return window;
	smalti_window_free(window);
	return NULL;
}

/* Takes a window whose rows are complete, as if it was written at once. */
static void on_done(void *user, struct smalti_window *window)
{
	struct extraction *e = user;
	e->unwritten--;
	smalti_window_free(window);
}

static int wait_for_windows(struct extraction *e, int64_t max, struct smalti_error *error)
{
	int status = 0;
	while (status == 0 && e->unwritten > max)
		status = smalti_extract_jobs_wait(&e->jobs, error);
	return status;
}

static int extract(struct extraction *e, struct smalti_error *error)
{
	const int64_t items = e->c->options->extraction.items;
	int64_t at = 0;
	int status = 0;
	while (status == 0 && at < items) {
		struct smalti_window *window = make_window(e, at, items - at, error);
		if (!window)
			return -1;
		at += window->count;
		e->unwritten++;
		status = smalti_extract_jobs_begin(&e->jobs, window, error);
		if (status == 0)
			status = wait_for_windows(e, SMALTI_WINDOWS_MAX - 1, error);
	}
	return status == 0 ? wait_for_windows(e, 0, error) : status;
}

int smalti_case_extraction(struct smalti_case *c, struct smalti_error *error)
{
	struct extraction e = {.c = c};
	struct smalti_case_outcome outcome = {.strategy = NULL};
	struct smalti_simulation *simulation = NULL;
	int status = open_parts(&e, error) < 0 || set_picture(&e, error) < 0 ||
			     smalti_extract_jobs_open(&e.jobs, &e.parts, on_done, NULL, &e, error) < 0 ||
			     extract(&e, error) < 0
			 ? -1
			 : 0;
	if (status == 0)
		simulation = smalti_simulation_take(c->session, error);
	outcome.simulation = simulation;
	status = simulation ? smalti_case_print(c, &outcome, error) : -1;
	smalti_simulation_free(simulation);
	smalti_extract_jobs_close(&e.jobs);
	smalti_extract_parts_close(&e.parts);
	return status;
}
