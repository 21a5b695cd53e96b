/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/deliver.h"
#include "jobs/model.h"
#include "ranks/ranks.h"

/* The states of texts for callers of the library; images have theirs from text.c. */

void smalti_text_states_free(struct smalti_text_states *states)
{
	free(states->ids);
	free(states->values);
	*states = (struct smalti_text_states){0};
}

static int tokenize(const struct smalti_model *model, const char *text, enum smalti_cleaning cleaning,
		    struct smalti_text_states *states, struct smalti_error *error)
{
	if (smalti_check_given(text, "text", error) < 0 ||
	    smalti_prompt_encoder_tokenize(&model->text, text, strlen(text), cleaning, &states->ids,
					   &states->tokens, error) < 0)
		return -1;
	states->width = model->text.model->width;
	states->values = smalti_calloc(states->tokens * states->width, sizeof(*states->values), error);
	return states->values ? 0 : -1;
}

/* Inserts the tasks of texts that are encoded together. */
static void insert_some(const struct smalti_model *model, struct smalti_task_group *task_group,
			struct smalti_text_states *states, int count)
{
	struct smalti_token_ids words[SMALTI_TEXTS_TOGETHER];
	struct smalti_tile *hidden[SMALTI_TEXTS_TOGETHER] = {NULL};
	for (int i = 0; i < count; i++)
		words[i] = (struct smalti_token_ids){.ids = states[i].ids, .count = states[i].tokens};
	model->text.model->functions->encode(model->text.model, task_group, words, count,
					     &smalti_strategy_none, hidden);
	for (int i = 0; i < count; i++) {
		smalti_deliver_to_all(task_group, hidden[i], states[i].tokens * states[i].width,
				      states[i].values);
		smalti_tile_release(hidden[i]);
	}
}

static int encode(struct smalti_model *model, struct smalti_text_states *states, int64_t count,
		  struct smalti_error *error)
{
	struct smalti_throttle *throttle = &model->session->throttle;
	struct smalti_task_group *task_group = smalti_task_group_new(model->session, "texts", 0, error);
	if (!task_group)
		return -1;
	smalti_task_group_depends_on(task_group, model->task_group);
	smalti_insertion_begin(throttle);
	for (int64_t i = 0; i < count; i += SMALTI_TEXTS_TOGETHER)
		insert_some(model, task_group, states + i, (int)smalti_min(SMALTI_TEXTS_TOGETHER, count - i));
	smalti_insertion_end(throttle);
	smalti_task_group_wait(task_group);
	const int status = smalti_task_group_status(task_group, error);
	smalti_task_group_free(task_group);
	return status;
}

int smalti_text_encode(struct smalti_model *model, const char *const *texts, int64_t count,
		       enum smalti_cleaning cleaning, struct smalti_text_states *states,
		       struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(model, "model", error) < 0 || smalti_check_given(texts, "texts", error) < 0 ||
	    smalti_check_range(count, 1, INT64_MAX, "number of texts", error) < 0 ||
	    smalti_check_range((int)cleaning, 0, SMALTI_CLEANING_STRIP, "cleaning", error) < 0 ||
	    smalti_check_given(states, "states to fill", error) < 0)
		return -1;
	int status = 0;
	for (int64_t i = 0; i < count; i++)
		states[i] = (struct smalti_text_states){0};
	for (int64_t i = 0; i < count && status == 0; i++)
		status = tokenize(model, texts[i], cleaning, &states[i], error);
	if (smalti_ranks_agree(status, NULL, error) == 0)
		status = encode(model, states, count, error);
	status = smalti_ranks_agree(status, NULL, error);
	for (int64_t i = 0; i < count && status < 0; i++)
		smalti_text_states_free(&states[i]);
	return status;
}
