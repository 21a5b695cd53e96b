/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "extract/jobs.h"
#include "jobs/precision.h"

/* A caption that T5 encodes. */
struct smalti_caption_job {
	const struct smalti_extract_job *job;
	struct smalti_extract_item *item;
	struct smalti_features_text *text;
	char **problem; /* of the item */
};

/* Orders by length, then by index: neighbours in a pack are alike. */
static int by_length(const void *left, const void *right)
{
	const struct smalti_caption_job *a = left, *b = right;
	if (a->text->tokens != b->text->tokens)
		return a->text->tokens < b->text->tokens ? -1 : 1;
	if (a->item->row.index != b->item->row.index)
		return a->item->row.index < b->item->row.index ? -1 : 1;
	return (a->text > b->text) - (a->text < b->text);
}

static int64_t list_captions(const struct smalti_extract_jobs *jobs, struct smalti_window *window,
			     struct smalti_caption_job *list)
{
	int64_t count = 0;
	for (int64_t i = 0; i < window->count; i++)
		for (int k = 0; k < jobs->parts->options.caption_count; k++)
			if (window->items[i].row.texts[k].tokens)
				list[count++] =
				    (struct smalti_caption_job){.item = &window->items[i],
								.text = &window->items[i].row.texts[k],
								.problem = &window->items[i].problems[k]};
	qsort(list, (size_t)count, sizeof(*list), by_length);
	return count;
}

/* Returns how many of the captions make a pack, and counts their tokens. */
static int64_t cut_pack(const struct smalti_extract_jobs *jobs, const struct smalti_caption_job *list,
			int64_t count, int64_t *tokens)
{
	int64_t taken = 0;
	for (*tokens = 0; taken < count; taken++) {
		const int64_t more = list[taken].text->tokens;
		if (taken && *tokens + more > jobs->parts->pack_tokens)
			break;
		*tokens += more;
	}
	return taken;
}

/* Delivers a caption's values, on a worker. Wrong values of one caption do not change the others of its
 * pack. */
static int deliver(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	const struct smalti_caption_job *caption = user;
	struct smalti_error refused = SMALTI_NO_ERROR;
	const struct smalti_extract_jobs *jobs = caption->job->of;
	const enum smalti_dtype compute = smalti_precision_dtype(jobs->parts->options.model.precision);
	caption->text->values =
	    smalti_extract_job_keep(jobs, count, values, "text encoder", compute, &refused);
	if (caption->text->values)
		return 0;
	if (refused.code != SMALTI_ECORRUPT)
		return smalti_pass(error, &refused);
	*caption->problem = smalti_format(error, "%s", refused.message);
	return *caption->problem ? 0 : -1;
}

static int insert(struct smalti_extract_job *job, struct smalti_error *error)
{
	const struct smalti_extract_parts *parts = job->of->parts;
	const int64_t width = parts->text.model->width;
	SCOPED(free)
	struct smalti_token_ids *words = smalti_calloc(job->caption_count, sizeof(*words), error);
	SCOPED(free)
	struct smalti_tile **hidden = smalti_calloc(job->caption_count, sizeof(struct smalti_tile *), error);
	if (words && hidden) {
		for (int64_t i = 0; i < job->caption_count; i++)
			words[i] = (struct smalti_token_ids){.ids = job->captions[i].text->ids,
							     .count = job->captions[i].text->tokens};
		parts->text.model->functions->encode(parts->text.model, job->job.task_group, words,
						     job->caption_count, &smalti_strategy_none, hidden);
		for (int64_t i = 0; i < job->caption_count; i++) {
			smalti_insert(deliver, job->job.task_group, (.x = hidden[i]),
				      .count = words[i].count * width, .sink = deliver,
				      .user = &job->captions[i]);
			smalti_tile_release(hidden[i]);
		}
	}
	return words && hidden ? 0 : -1;
}

static void complete_caption(struct smalti_run_sample *work, struct smalti_window *window,
			     struct smalti_caption_job *caption)
{
	struct smalti_features_text *text = caption->text;
	if (*caption->problem) {
		smalti_item_fail(caption->item, "t5", *caption->problem);
		text->tokens = 0;
		return;
	}
	work->captions++;
	work->tokens += text->tokens;
	window->timing.tokens += text->tokens;
}

static void finish(struct smalti_extract_job *job)
{
	struct smalti_extract_jobs *jobs = job->of;
	struct smalti_task_group_progress progress;
	smalti_task_group_progress(job->job.task_group, &progress);
	jobs->work.text += progress.seconds;
	jobs->work.computing -= job->caption_count;
	job->window->timing.text_seconds += progress.seconds;
	/* The text encoder would fail with other captions, too. */
	if (smalti_task_group_status(job->job.task_group, &jobs->broken) < 0)
		return;
	for (int64_t i = 0; i < job->caption_count; i++)
		complete_caption(&jobs->work, job->window, &job->captions[i]);
}

static int begin_pack(struct smalti_extract_jobs *jobs, struct smalti_window *window,
		      const struct smalti_caption_job *list, int64_t count, int64_t tokens,
		      struct smalti_error *error)
{
	const int64_t bytes =
	    jobs->parts->text.model->functions->working_bytes(jobs->parts->text.model, tokens);
	struct smalti_caption_job *captions = smalti_calloc(count, sizeof(*captions), error);
	struct smalti_extract_job *job =
	    captions ? smalti_extract_job_open(jobs, window, "captions", bytes, finish, error) : NULL;
	if (!job) {
		free(captions);
		return -1;
	}
	memcpy(captions, list, (size_t)count * sizeof(*captions));
	job->captions = captions;
	job->caption_count = count;
	for (int64_t i = 0; i < count; i++)
		captions[i].job = job;
	jobs->work.computing += count;
	const int status = insert(job, error);
	smalti_job_submit(&job->job);
	return status;
}

int smalti_extract_jobs_begin_texts(struct smalti_extract_jobs *jobs, struct smalti_window *window,
				    struct smalti_error *error)
{
	SCOPED(free)
	struct smalti_caption_job *list =
	    smalti_calloc(window->count * jobs->parts->options.caption_count, sizeof(*list), error);
	if (!list)
		return -1;
	const int64_t count = list_captions(jobs, window, list);
	int status = 0;
	for (int64_t begun = 0, taken, tokens; begun < count && status == 0; begun += taken) {
		taken = cut_pack(jobs, list + begun, count - begun, &tokens);
		status = begin_pack(jobs, window, list + begun, taken, tokens, error);
	}
	return status;
}
