/* SPDX-License-Identifier: Apache-2.0 */
#include "train/null_caption.h"
#include "train/run_parts.h"

/* Returns the digest of the features' text encoder. */
static const char *text_model_of(const cJSON *identity)
{
	const cJSON *features = cJSON_GetObjectItemCaseSensitive(identity, "features");
	return cJSON_GetStringValue(
	    cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(features, "models"), "text"));
}

/* Returns the rows of the null caption if it is padded like captions; 0: it has its own number. */
static int64_t padded_tokens(const struct smalti_training_run *run)
{
	const bool own = run->options->data.null_tokens == SMALTI_NULL_TOKENS_OWN;
	return own ? 0 : smalti_training_data_schema(run->data)->max_tokens;
}

bool smalti_training_run_same_null_caption(const struct smalti_training_run *run, const cJSON *identity)
{
	const cJSON *before = cJSON_GetObjectItemCaseSensitive(run->saved.identity, "null_tokens");
	const cJSON *now = cJSON_GetObjectItemCaseSensitive(identity, "null_tokens");
	const char *text_model = text_model_of(run->saved.identity);
	const int64_t padded = padded_tokens(run);
	return cJSON_Compare(before, now, true) && text_model &&
	       strcmp(text_model, text_model_of(identity)) == 0 &&
	       (padded == 0 || padded == run->saved.null_caption.tokens);
}

int smalti_training_run_encode_null_caption(struct smalti_training_run *run, struct smalti_error *error)
{
	return smalti_null_caption_encode(run->session, &run->options->model,
					  text_model_of(run->saved.identity), padded_tokens(run),
					  &run->saved.null_caption, error);
}
