/* SPDX-License-Identifier: Apache-2.0 */
#include "train/null_caption.h"
#include "graphs/deliver.h"
#include "jobs/model.h"
#include "ranks/ranks.h"

enum { TOKENS_MAX = 2 }; /* of the empty text */

static int tokenize(struct smalti_prompt_encoder *encoder, int32_t ids[TOKENS_MAX], int64_t *count,
		    struct smalti_error *error)
{
	SCOPED(free) int32_t *found = NULL;
	encoder->max_tokens = TOKENS_MAX;
	if (smalti_prompt_encoder_tokenize(encoder, "", 0, SMALTI_CLEANING_RAW, &found, count, error) < 0)
		return -1;
	memcpy(ids, found, (size_t)*count * sizeof(*ids));
	return 0;
}

static int insert(const struct smalti_prompt_encoder *encoder, struct smalti_task_group *task_group,
		  const struct smalti_token_ids *words, float *values, struct smalti_error *error)
{
	struct smalti_tile *hidden = NULL;
	encoder->model->functions->encode(encoder->model, task_group, words, 1, &smalti_strategy_none,
					  &hidden);
	smalti_deliver_to_all(task_group, hidden, words->count * encoder->model->width, values);
	smalti_tile_release(hidden);
	smalti_task_group_wait(task_group);
	return smalti_task_group_status(task_group, error);
}

/* Computes one token for all padding, which has its hidden states: all attend to the real tokens alone, of
 * which there is one, at any distance. */
static int encode(struct smalti_prompt_encoder *encoder, struct smalti_task_group *task_group, int64_t padded,
		  struct smalti_null_caption *caption, struct smalti_error *error)
{
	int32_t ids[TOKENS_MAX + 1];
	struct smalti_token_ids words = {.ids = ids};
	if (tokenize(encoder, ids, &words.count, error) < 0)
		return -1;
	words.padding = padded > words.count;
	if (words.padding)
		ids[words.count++] = (int32_t)encoder->config.pad_id;
	caption->tokens = smalti_max(words.count, padded);
	caption->width = encoder->model->width;
	caption->values = smalti_calloc(caption->tokens * caption->width, sizeof(*caption->values), error);
	if (!caption->values || insert(encoder, task_group, &words, caption->values, error) < 0)
		return -1;
	for (float *row = caption->values + words.count * caption->width;
	     row < caption->values + caption->tokens * caption->width; row += caption->width)
		memcpy(row, row - caption->width, (size_t)caption->width * sizeof(*row));
	return 0;
}

static int check_encoder(const char *directory, const char *digest, const char *text_model,
			 struct smalti_error *error)
{
	if (strcmp(digest, text_model) == 0)
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "the features of captions are of the text encoder %s, %s is %s: give the --model, or --tokenizer "
	    "and --text-encoder, that they were extracted with",
	    text_model, directory, digest);
}

int smalti_null_caption_encode(struct smalti_session *session, const struct smalti_model_options *model,
			       const char *text_model, int64_t padded, struct smalti_null_caption *caption,
			       struct smalti_error *error)
{
	SCOPED(free) char *directory = NULL;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "null caption", 0, error);
	struct smalti_prompt_encoder encoder = {0};
	char digest[SMALTI_DIGEST_LENGTH + 1];
	const bool opened =
	    task_group &&
	    smalti_prompt_encoder_open_of(&encoder, task_group, model, &directory, digest, error) == 0 &&
	    check_encoder(directory, digest, text_model, error) == 0;
	int status = smalti_ranks_agree(opened ? 0 : -1, NULL, error);
	if (opened && status == 0)
		status = encode(&encoder, task_group, padded, caption, error);
	if (task_group)
		smalti_task_group_wait(task_group);
	smalti_prompt_encoder_close(&encoder);
	smalti_task_group_free(task_group);
	return status;
}
