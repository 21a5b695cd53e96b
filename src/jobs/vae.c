/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/vae.h"
#include "base/file.h"
#include "checkpoint/pipeline_directory.h"
#include "jobs/precision.h"
#include "jobs/unused.h"
#include "jobs/vae_follow.h"
#include "ranks/ranks.h"

#include <math.h>
#include <xxhash.h>

void smalti_vae_defaults(struct smalti_vae_options *options)
{
	*options = (struct smalti_vae_options){0};
}

struct smalti_checkpoint *smalti_vae_read(const char *directory, const char *variant,
					  struct smalti_vae_config *config, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/config.json", directory);
	const int status = path && smalti_component_check(directory, error) == 0
			       ? smalti_vae_config_read(path, config, error)
			       : -1;
	return status < 0 ? NULL : smalti_checkpoint_open(directory, SMALTI_STEM_DIFFUSERS, variant, error);
}

/* Returns the VAE's directory in a pipeline's; otherwise the directory itself. */
static char *find_directory(const char *given, struct smalti_error *error)
{
	const char *directory = given ? given : smalti_embedded_model(error);
	if (directory && smalti_pipeline_directory_check(directory, error))
		return NULL;
	const int found = directory ? smalti_find_in(directory, "vae", error) : -1;
	return found < 0 ? NULL : smalti_format(error, found ? "%s/vae" : "%s", directory);
}

static int open_parts(struct smalti_vae *vae, const struct smalti_vae_options *options,
		      struct smalti_error *error)
{
	vae->weights = smalti_task_group_new(vae->session, "weights", INT64_MAX, error);
	if (!vae->weights || smalti_queue_open(&vae->queue, vae->session, 1, error) < 0)
		return -1;
	vae->directory = find_directory(options->directory, error);
	if (vae->directory)
		vae->checkpoint = smalti_vae_read(vae->directory, options->variant, &vae->config, error);
	vae->compute = smalti_precision_vae_dtype(options->precision, &vae->config);
	return vae->checkpoint
		   ? smalti_unused_tensors(vae->checkpoint, SMALTI_VAE, &vae->config, &vae->unused, error)
		   : -1;
}

/* Has all ranks open the same VAE, or none. */
static int agree_to_open(struct smalti_vae *vae, int status, struct smalti_error *error)
{
	char digest[SMALTI_DIGEST_LENGTH + 1] = "";
	struct smalti_ranks_vote vote = {.digest = (uint64_t)vae->compute};
	if (status == 0 && smalti_ranks_count() > 1)
		status = smalti_vae_digest(vae, digest, error);
	vote.digest ^= XXH64(digest, sizeof(digest), 0);
	vae->opened = smalti_ranks_agree(status, &vote, error) == 0;
	return vae->opened ? 0 : -1;
}

struct smalti_vae *smalti_vae_open(struct smalti_session *session, const struct smalti_vae_options *options,
				   struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_vae_options defaults;
	smalti_vae_defaults(&defaults);
	options = options ? options : &defaults;
	if (smalti_check_given(session, "session", error) < 0 ||
	    smalti_precision_choose(options->precision, session, error) < 0)
		return NULL;
	struct smalti_vae *vae = smalti_calloc(1, sizeof(*vae), error);
	if (!vae)
		return NULL;
	vae->session = session;
	if (agree_to_open(vae, open_parts(vae, options, error), error) == 0)
		return vae;
	smalti_vae_close(vae);
	return NULL;
}

void smalti_vae_close(struct smalti_vae *vae)
{
	if (!vae)
		return;
	if (vae->opened && smalti_ranks_own() == 0)
		smalti_vae_broadcast_end();
	if (vae->opened)
		smalti_ranks_settle();
	if (vae->weights)
		smalti_task_group_wait(vae->weights); /* its tasks read the mapped file */
	for (int i = 0; i < SMALTI_VAE_DIRECTIONS; i++)
		smalti_vae_net_free(vae->net[i]);
	smalti_queue_close(&vae->queue);
	smalti_task_group_free(vae->weights);
	smalti_checkpoint_close(vae->checkpoint);
	free(vae->directory);
	free(vae);
}

int smalti_vae_digest(const struct smalti_vae *vae, char digest[SMALTI_DIGEST_LENGTH + 1],
		      struct smalti_error *error)
{
	const struct smalti_checkpoint *const weights[] = {vae->checkpoint};
	SCOPED(free) char *config = smalti_format(error, "%s/config.json", vae->directory);
	return config ? smalti_digest((const char *const[]){config}, 1, weights, 1, digest, error) : -1;
}

void smalti_vae_info(const struct smalti_vae *vae, struct smalti_vae_info *info)
{
	*info = (struct smalti_vae_info){.latent_channels = vae->config.latent_channels,
					 .latent_pixels = smalti_vae_factor(&vae->config),
					 .scaling_factor = vae->config.scaling_factor,
					 .unused = vae->unused.code ? vae->unused.message : NULL};
}

void smalti_vae_cancel(struct smalti_vae *vae)
{
	smalti_queue_cancel(&vae->queue);
}

struct smalti_vae_net *smalti_vae_open_net(struct smalti_vae *vae, enum smalti_vae_direction direction,
					   struct smalti_error *error)
{
	if (!vae->net[direction])
		vae->net[direction] = smalti_vae_net_new(direction, vae->weights, &vae->config,
							 vae->checkpoint, vae->compute, error);
	return vae->net[direction];
}

/* A job that is being run. */
struct run {
	struct smalti_job job;
	const struct smalti_vae_request *request;
	struct smalti_vae_plan plan;
	struct smalti_error *error;
	int status;
};

static void report_progress(void *user)
{
	const struct run *run = user;
	struct smalti_task_group_progress progress;
	smalti_task_group_progress(run->job.task_group, &progress);
	const double share = progress.done / run->plan.flops;
	run->request->on_progress(run->request->user, share < 1 ? share : 1);
}

static void complete(struct smalti_job *job)
{
	struct run *run = (struct run *)job;
	run->status = smalti_task_group_status(job->task_group, run->error);
}

static int run_plan(struct run *run, struct smalti_vae *vae, struct smalti_vae_net *net,
		    smalti_vae_insert *insert, void *user)
{
	struct smalti_queue *queue = &vae->queue;
	run->job.complete = complete;
	if (smalti_job_open(queue, &run->job, smalti_vae_doing[net->direction], run->error) < 0) {
		smalti_ranks_give_up(run->error);
		return -1;
	}
	queue->progress = run->request->on_progress ? report_progress : NULL;
	queue->user = run;
	smalti_task_group_depends_on(run->job.task_group, vae->weights);
	insert(net, run->job.task_group, &run->plan, user);
	smalti_job_submit(&run->job);
	smalti_queue_drain(queue);
	return run->status;
}

int smalti_vae_request_run(struct smalti_vae *vae, enum smalti_vae_direction direction,
			   const struct smalti_vae_request *request, smalti_vae_insert *insert, void *user,
			   struct smalti_error *error)
{
	struct run run = {.request = request, .error = error};
	struct smalti_vae_plan *plan = &run.plan;
	struct smalti_vae_net *net = smalti_vae_open_net(vae, direction, error);
	int status = net ? smalti_vae_request_plan(vae->session, net, request, plan, error) : -1;
	if (status == 0 && plan->offloaded) {
		plan->file = smalti_offload_open(request->scratch, plan->offloaded, error);
		status = plan->file ? 0 : -1;
	}
	if (status == 0)
		status = smalti_task_group_status(vae->queue.cancelled, error);
	struct smalti_ranks_vote vote = {.digest = vae->session->sequence};
	if (status == 0)
		vote.digest ^= smalti_vae_plan_digest(plan, net->count + 1);
	status = smalti_ranks_agree(status, &vote, error);
	if (status == 0 && net)
		status = run_plan(&run, vae, net, insert, user);
	smalti_offload_close(plan->file);
	smalti_vae_plan_free(plan);
	return status;
}

int smalti_check_planes(const float *planes, int64_t channels, int64_t height, int64_t width,
			struct smalti_error *error)
{
	for (int64_t i = 0; i < channels * height * width; i++)
		if (!isfinite(planes[i]))
			return smalti_fail(error, SMALTI_EINVAL,
					   "latents: expected finite values, found %g at [%" PRId64
					   ", %" PRId64 ", %" PRId64 "]",
					   (double)planes[i], i / (height * width), i / width % height,
					   i % width);
	return 0;
}
