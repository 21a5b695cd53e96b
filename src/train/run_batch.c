/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks/ranks.h"
#include "train/run_parts.h"

int smalti_training_run_deal(struct smalti_training_run *run, struct smalti_error *error)
{
	const int64_t batch = run->options->batch;
	if (smalti_ranks_count() == 1)
		return 0;
	SCOPED(free) bool *own = smalti_calloc(batch, sizeof(*own), error);
	for (int64_t i = 0; own && i < batch; i++)
		own[i] = smalti_sample_is_own(&run->trainer, i);
	return own ? smalti_training_data_deal(run->data, own, smalti_ranks_own() == 0, error) : -1;
}

static void free_samples(const struct smalti_training_run *run)
{
	for (int64_t i = 0; i < run->options->batch; i++)
		smalti_training_sample_free(&run->samples[i]);
}

/* Has all ranks leave out the damaged row that one of them found, and begin the batch again. */
static int leave_out(struct smalti_training_run *run, int64_t index,
		     const struct smalti_data_position *before, const struct smalti_error *own,
		     struct smalti_error *error)
{
	struct smalti_error cause = *own;
	smalti_ranks_agree(smalti_training_data_damaged(run->data) == index ? -1 : 0, NULL, &cause);
	return smalti_training_data_note(run->data, index, cause.message, error) < 0
		   ? -1
		   : smalti_training_data_seek(run->data, before, error);
}

/* Reads a batch: 0, or 1, to be read again. */
static int read_batch(struct smalti_training_run *run, const struct smalti_data_position *before,
		      struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	struct smalti_ranks_vote vote = {.digest = 0};
	int status = smalti_training_data_next(run->data, run->samples, &cause);
	const int64_t damaged = smalti_training_data_damaged(run->data);
	const int64_t first = smalti_ranks_min(damaged < 0 ? INT64_MAX : damaged);
	if (first == INT64_MAX) {
		for (int64_t i = 0; status == 0 && i < run->options->batch; i++)
			vote.digest = vote.digest * 31 + (uint64_t)run->samples[i].index;
		return smalti_ranks_agree(status, &vote, &cause) < 0 ? smalti_pass(error, &cause) : 0;
	}
	if (status == 0)
		free_samples(run);
	status = leave_out(run, first, before, &cause, &cause);
	return smalti_ranks_agree(status, NULL, &cause) < 0 ? smalti_pass(error, &cause) : 1;
}

int smalti_training_run_next_batch(struct smalti_training_run *run, struct smalti_error *error)
{
	struct smalti_data_position before;
	int status = 1;
	if (smalti_ranks_count() == 1)
		return smalti_training_data_next(run->data, run->samples, error);
	while (status > 0) {
		if (smalti_training_data_position(run->data, &before, error) < 0) {
			smalti_ranks_give_up(error);
			return -1;
		}
		status = read_batch(run, &before, error);
		free(before.waiting);
	}
	return status;
}
