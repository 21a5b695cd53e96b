/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "bench/stage_parts.h"
#include "graphs/t5/t5.h"
#include "jobs/precision.h"
#include "rt/session.h"

#include <stdlib.h>

struct state {
	struct smalti_text_encoder *t5;
	int32_t *ids; /* of all captions, one after the other */
};

/* Writes any words, then the end of the sentence. */
static int write_captions(const struct smalti_stage_spec *stage, const struct smalti_t5_config *config,
			  struct state *state, struct smalti_error *error)
{
	int64_t all = 0;
	for (int64_t i = 0; i < stage->captions; i++)
		all += stage->tokens[i];
	state->ids = smalti_calloc(all, sizeof(*state->ids), error);
	if (!state->ids)
		return -1;
	int32_t *id = state->ids;
	for (int64_t i = 0; i < stage->captions; i++) {
		for (int64_t token = 0; token < stage->tokens[i] - 1; token++, id++)
			*id = (int32_t)((id - state->ids) * 7919 % config->vocabulary);
		*id++ = (int32_t)config->eos_id;
	}
	return 0;
}

static int open_t5(struct smalti_stage_run *run, struct smalti_error *error)
{
	struct smalti_t5_config config;
	struct state *state = run->state = smalti_calloc(1, sizeof(*state), error);
	char *path = state ? smalti_stage_config(run, "text_encoder", error) : NULL;
	const int status = path ? smalti_t5_config_read(path, &config, error) : -1;
	free(path);
	if (status < 0 || smalti_stage_checkpoint(run, "text_encoder", SMALTI_STEM_T5, error) < 0)
		return -1;
	smalti_text_encoder_choose(run->model->text_encoder, run->checkpoint);
	state->t5 = smalti_t5_new(run->weights, &config, run->checkpoint, run->model->precision, error);
	if (!state->t5)
		return -1;
	const int64_t limit = run->session->memory_limit;
	if (limit && state->t5->functions->mapped_bytes(state->t5) > limit / 2)
		state->t5->functions->stream(state->t5);
	return write_captions(run->stage, &config, state, error);
}

static void insert(struct smalti_stage_run *run, struct smalti_task_group *task_group)
{
	struct state *state = run->state;
	const int32_t *ids = state->ids;
	struct smalti_token_ids words[SMALTI_STAGE_CAPTIONS];
	struct smalti_tile *hidden[SMALTI_STAGE_CAPTIONS];
	for (int64_t i = 0; i < run->stage->captions; ids += run->stage->tokens[i++])
		words[i] = (struct smalti_token_ids){.ids = ids, .count = run->stage->tokens[i]};
	state->t5->functions->encode(state->t5, task_group, words, run->stage->captions,
				     &smalti_strategy_none, hidden);
	for (int64_t i = 0; i < run->stage->captions; i++)
		smalti_tile_release(hidden[i]);
}

static void close_t5(struct smalti_stage_run *run)
{
	struct state *state = run->state;
	if (!state)
		return;
	smalti_text_encoder_free(state->t5);
	free(state->ids);
	free(state);
}

const struct smalti_stage_part smalti_stage_t5 = {open_t5, insert, close_t5};
