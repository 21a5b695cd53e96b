/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "codelets/codelets.h"
#include "extract/jobs.h"
#include "graphs/vae/plan.h"
#include "jobs/plan.h"
#include "jobs/vae.h"

/* Chooses a band's latent rows. Many images keep the workers busy, so one is only cut into tasks whose maps
 * have some megabytes. The shape alone decides, as it does the bits. */
static int64_t choose_rows(const struct smalti_vae *vae, const struct smalti_bin_plan *bin)
{
	enum { BAND_BYTES = 4 << 20 };
	const struct smalti_vae_net *layers = vae->net[SMALTI_VAE_ENCODE];
	const int64_t factor = smalti_vae_factor(&vae->config);
	int64_t max = 1; /* most bytes of a map for a latent row */
	for (int i = 0; i <= layers->count; i++) {
		const struct smalti_vae_shape *map = &layers->map[i];
		const int64_t pixels =
		    factor * factor * bin->width * map->up / map->down * map->up / map->down;
		max = smalti_max(max, pixels * map->channels * (int64_t)sizeof(float));
	}
	return smalti_max(BAND_BYTES / max, SMALTI_TILE_ROWS);
}

/* Makes a plan within `memory`. */
static int make_plan(const struct smalti_extract_jobs *jobs, int64_t memory, struct smalti_bin_plan *bin,
		     struct smalti_error *error)
{
	const struct smalti_vae *vae = jobs->parts->vae;
	struct smalti_vae_budget budget = smalti_vae_no_budget(jobs->parts->room.workers);
	budget.memory = memory;
	return smalti_vae_net_plan(vae->net[SMALTI_VAE_ENCODE], bin->height, bin->width,
				   choose_rows(vae, bin), &budget, &bin->plan, error);
}

/* Refuses the bin, whose plan is the smallest one, and says what it needs. */
static int refuse(const struct smalti_extract_jobs *jobs, const struct smalti_bin_plan *bin,
		  struct smalti_error *error)
{
	const struct smalti_extract_parts *parts = jobs->parts;
	const int64_t factor = smalti_vae_factor(&parts->vae->config);
	char memory[SMALTI_WORKER_NAME];
	smalti_extract_room_name(parts->session, &parts->room, memory);
	return smalti_fail(
	    error, SMALTI_ENOMEM,
	    "%s: encoding an image of %" PRId64 "x%" PRId64 " needs %" PRId64 " bytes at least, but %" PRId64
	    " are free beside the weights: raise --%smemory-limit, or take a smaller --img-size",
	    memory, bin->width * factor, bin->height * factor, bin->plan.memory,
	    smalti_max(parts->room.each, 0), parts->room.place ? "gpu-" : "");
}

/* Plans a bin: the fastest plan if many images can have it at a time, else one that leaves room for a second
 * image, else one that takes all memory. Rows are the same with each. */
static int plan_bin(const struct smalti_extract_jobs *jobs, struct smalti_bin_plan *bin,
		    struct smalti_error *error)
{
	enum { MANY = 8 };
	struct smalti_error refused = SMALTI_NO_ERROR;
	const int64_t memory = jobs->parts->room.each;
	if (make_plan(jobs, INT64_MAX, bin, error) < 0)
		return -1;
	if (bin->plan.memory <= memory / MANY)
		return 0;
	smalti_vae_plan_free(&bin->plan);
	if (make_plan(jobs, memory / 2, bin, &refused) == 0)
		return 0;
	smalti_vae_plan_free(&bin->plan);
	if (make_plan(jobs, memory, bin, &refused) == 0)
		return 0;
	return bin->plan.storage ? refuse(jobs, bin, error) : smalti_pass(error, &refused);
}

static const struct smalti_vae_plan *find_plan(struct smalti_extract_jobs *jobs, int64_t height,
					       int64_t width, struct smalti_error *error)
{
	for (int i = 0; i < jobs->plan_count; i++)
		if (jobs->plans[i].height == height && jobs->plans[i].width == width)
			return &jobs->plans[i].plan;
	if (!jobs->plans)
		jobs->plans = smalti_calloc(SMALTI_BINS_MAX, sizeof(*jobs->plans), error);
	if (!jobs->plans)
		return NULL;
	struct smalti_bin_plan *bin = &jobs->plans[jobs->plan_count];
	bin->height = height;
	bin->width = width;
	if (plan_bin(jobs, bin, error) < 0) {
		smalti_vae_plan_free(&bin->plan);
		return NULL;
	}
	jobs->plan_count++;
	return &bin->plan;
}

int smalti_extract_jobs_count_images(struct smalti_extract_jobs *jobs, struct smalti_error *error)
{
	const struct smalti_extract_parts *parts = jobs->parts;
	const int64_t factor = smalti_vae_factor(&parts->vae->config);
	struct smalti_bin bin;
	if (smalti_bins_nearest(parts->options.image_size, SMALTI_BINS_TRAINING, 1, 1, &bin, error) < 0)
		return -1;
	const struct smalti_vae_plan *plan = find_plan(jobs, bin.height / factor, bin.width / factor, error);
	if (plan)
		jobs->images =
		    smalti_max(1, smalti_min(parts->room.all / plan->memory, jobs->queue.max_jobs));
	return plan ? 0 : -1;
}

/* Reads rows on a worker, one call at a time. */
static int read_rows(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
		     struct smalti_error *error)
{
	struct smalti_extract_job *job = user;
	struct smalti_extract_item *item = job->item;
	const double began = smalti_now();
	(void)width;
	const int status = smalti_input_image_rows(item->input, first, rows, pixels, &item->read);
	job->decoding_seconds += smalti_now() - began;
	return status == 0 ? 0 : smalti_pass(error, &item->read);
}

static int deliver(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	const struct smalti_extract_job *job = user;
	job->item->row.image.values =
	    smalti_extract_job_keep(job->of, count, values, "VAE", job->of->parts->vae->compute, error);
	return job->item->row.image.values ? 0 : -1;
}

static void note(struct smalti_extract_job *job, const struct smalti_error *cause)
{
	struct smalti_extract_item *item = job->item;
	free((void *)item->row.image.values);
	item->row.image = (struct smalti_features_image){0};
	if (smalti_is_of_input(item->read.code))
		smalti_item_fail(item, "picture", item->read.message);
	else if (cause->code == SMALTI_ECORRUPT)
		smalti_item_fail(item, "vae", cause->message);
	else if (!job->of->broken.code)
		job->of->broken = *cause;
}

static void finish(struct smalti_extract_job *job)
{
	struct smalti_run_sample *work = &job->of->work;
	struct smalti_extract_item *item = job->item;
	struct smalti_shard_timing *timing = &job->window->timing;
	struct smalti_task_group_progress progress;
	struct smalti_error cause = SMALTI_NO_ERROR;
	smalti_task_group_progress(job->job.task_group, &progress);
	work->computing--;
	work->decode += job->decoding_seconds;
	work->vae += progress.seconds - job->decoding_seconds;
	timing->image_seconds += progress.seconds;
	const struct smalti_bin *bin = &item->picture.bin;
	if (smalti_task_group_status(job->job.task_group, &cause) < 0) {
		note(job, &cause);
	} else {
		work->images++;
		work->pixels += bin->height * bin->width;
		timing->pixels += bin->height * bin->width;
	}
	/* The file's bytes are no longer needed. */
	smalti_input_image_close(item->input);
	free(item->file);
	item->input = NULL;
	item->file = NULL;
}

static int begin_image(struct smalti_extract_jobs *jobs, struct smalti_window *window,
		       struct smalti_extract_item *item, struct smalti_error *error)
{
	const struct smalti_vae *vae = jobs->parts->vae;
	const struct smalti_input_info *info = &item->picture;
	const int64_t factor = smalti_vae_factor(&vae->config);
	const int64_t height = info->bin.height / factor, width = info->bin.width / factor;
	const struct smalti_vae_plan *plan = find_plan(jobs, height, width, error);
	struct smalti_extract_job *job =
	    plan ? smalti_extract_job_open(jobs, window, "image", plan->memory, finish, error) : NULL;
	if (!job)
		return -1;
	job->item = item;
	item->row.image = (struct smalti_features_image){.height = info->original_height,
							 .width = info->original_width,
							 .ratio = info->bin.ratio,
							 .latent_height = height,
							 .latent_width = width};
	smalti_task_group_depends_on(job->job.task_group, vae->weights);
	struct smalti_tile *planes =
	    smalti_vae_encode(vae->net[SMALTI_VAE_ENCODE], job->job.task_group, plan, read_rows, job);
	smalti_insert(deliver, job->job.task_group, (.x = planes),
		      .count = 2 * vae->config.latent_channels * height * width, .sink = deliver,
		      .user = job);
	smalti_tile_release(planes);
	jobs->work.computing++;
	smalti_job_submit(&job->job);
	return 0;
}

/* Orders by shape, so that neighbours share compiled kernels, then by index. */
static int by_shape(const void *left, const void *right)
{
	struct smalti_extract_item *const *a = left, *const *b = right;
	const struct smalti_bin *x = &(*a)->picture.bin, *y = &(*b)->picture.bin;
	if (x->ratio != y->ratio)
		return x->ratio < y->ratio ? -1 : 1;
	return (*a)->row.index < (*b)->row.index ? -1 : 1;
}

/* Returns the number of images, or -1. */
static int64_t list_images(struct smalti_window *window, struct smalti_extract_item **list,
			   struct smalti_error *error)
{
	int64_t count = 0;
	for (int64_t i = 0; i < window->count; i++) {
		struct smalti_extract_item *item = &window->items[i];
		if (item->picture.width)
			list[count++] = item;
		else if (item->is_ordered && smalti_is_of_input(item->fetched.code))
			smalti_item_fail(item, "picture", item->fetched.message);
		else if (item->is_ordered)
			return smalti_pass(error, &item->fetched);
	}
	qsort(list, (size_t)count, sizeof(*list), by_shape);
	return count;
}

int smalti_extract_jobs_begin_images(struct smalti_extract_jobs *jobs, struct smalti_window *window,
				     struct smalti_error *error)
{
	SCOPED(free)
	struct smalti_extract_item **list =
	    smalti_calloc(window->count, sizeof(struct smalti_extract_item *), error);
	if (!list)
		return -1;
	const int64_t count = list_images(window, list, error);
	int status = count < 0 ? -1 : 0;
	for (int64_t i = 0; i < count && status == 0; i++)
		status = begin_image(jobs, window, list[i], error);
	return status;
}
