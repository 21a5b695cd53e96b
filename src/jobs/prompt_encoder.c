/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/prompt_encoder.h"
#include "base/file.h"
#include "checkpoint/pipeline_directory.h"
#include "jobs/adapters.h"
#include "jobs/model.h"
#include "jobs/precision.h"
#include "text/cleaning.h"

int smalti_prompt_encoder_open_files(struct smalti_prompt_encoder *encoder, const char *tokenizer,
				     const char *directory, const struct smalti_model_options *how,
				     struct smalti_error *error)
{
	if (smalti_component_check(directory, error) < 0 || smalti_component_check(tokenizer, error) < 0)
		return -1;
	encoder->checkpoint = smalti_checkpoint_open(directory, SMALTI_STEM_T5, how->variant, error);
	if (!encoder->checkpoint ||
	    smalti_t5_config_open(directory, encoder->checkpoint, &encoder->config, error) < 0)
		return -1;
	smalti_text_encoder_choose(how->text_encoder_precision, encoder->checkpoint);
	encoder->cleaner = smalti_cleaner_new(error);
	encoder->tokenizer = smalti_tokenizer_open(tokenizer, error);
	return encoder->cleaner && encoder->tokenizer ? 0 : -1;
}

int smalti_prompt_encoder_open_model(struct smalti_prompt_encoder *encoder,
				     struct smalti_task_group *task_group,
				     const struct smalti_model_options *how, struct smalti_error *error)
{
	encoder->model = encoder->known ? smalti_known_texts_new(encoder->known, &encoder->config,
								 encoder->checkpoint, error)
					: smalti_t5_new(task_group, &encoder->config, encoder->checkpoint,
							smalti_precision_dtype(how->precision), error);
	return encoder->model ? 0 : -1;
}

/* Reads the configuration of the pipeline's transformer, which adapters may change, too: 1; 0: there is none;
 * -1. */
static int find_transformer(const struct smalti_model_options *how, struct smalti_transformer_config *config,
			    struct smalti_error *error)
{
	const char *whole = how->directory ? how->directory : smalti_embedded_model(error);
	SCOPED(free)
	char *directory =
	    whole ? smalti_model_component(how->transformer, whole, "transformer", error) : NULL;
	SCOPED(free) char *path = directory ? smalti_format(error, "%s/config.json", directory) : NULL;
	const int found = path ? smalti_find_file(path, error) : -1;
	if (found <= 0)
		return found;
	return smalti_transformer_config_read(path, config, error) < 0 ? -1 : 1;
}

static int open_adapters(struct smalti_prompt_encoder *encoder, const struct smalti_model_options *how,
			 struct smalti_error *error)
{
	struct smalti_transformer_config transformer;
	const int found = find_transformer(how, &transformer, error);
	if (found < 0)
		return -1;
	encoder->adapters = smalti_adapters_open(how->loras, how->lora_count, &encoder->config,
						 found ? &transformer : NULL, error);
	if (!encoder->adapters)
		return -1;
	if (!smalti_adapter_set_find(encoder->adapters, SMALTI_TEXT_ENCODER, false))
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: it does not change the text encoder, and nothing else is used here",
				   how->loras[0].path);
	encoder->checkpoint->adapters = encoder->adapters;
	return 0;
}

int smalti_prompt_encoder_open(struct smalti_prompt_encoder *encoder, struct smalti_task_group *task_group,
			       const char *tokenizer, const char *directory,
			       const struct smalti_model_options *how, struct smalti_error *error)
{
	if (smalti_prompt_encoder_open_files(encoder, tokenizer, directory, how, error) < 0 ||
	    (how->lora_count > 0 && open_adapters(encoder, how, error) < 0))
		return -1;
	return smalti_prompt_encoder_open_model(encoder, task_group, how, error);
}

void smalti_prompt_encoder_close(struct smalti_prompt_encoder *encoder)
{
	smalti_text_encoder_free(encoder->model);
	smalti_checkpoint_close(encoder->checkpoint);
	smalti_adapter_set_free(encoder->adapters);
	smalti_tokenizer_close(encoder->tokenizer);
	smalti_cleaner_free(encoder->cleaner);
	*encoder = (struct smalti_prompt_encoder){0};
}

int smalti_prompt_encoder_digest(const struct smalti_prompt_encoder *encoder, const char *tokenizer,
				 const char *directory, char digest[SMALTI_DIGEST_LENGTH + 1],
				 struct smalti_error *error)
{
	char *files[] = {smalti_format(error, "%s/tokenizer_config.json", tokenizer),
			 smalti_tokenizer_file(tokenizer, error),
			 smalti_format(error, "%s/config.json", directory)};
	const struct smalti_checkpoint *const weights[] = {encoder->checkpoint};
	int status = files[0] && files[1] && files[2]
			 ? smalti_digest((const char *const *)files, 3, weights, 1, digest, error)
			 : -1;
	if (status == 0 && encoder->adapters)
		status = smalti_adapters_digest(encoder->adapters, digest, error);
	for (int i = 0; i < 3; i++)
		free(files[i]);
	return status;
}

int smalti_prompt_encoder_open_of(struct smalti_prompt_encoder *encoder, struct smalti_task_group *task_group,
				  const struct smalti_model_options *model, char **directory,
				  char digest[SMALTI_DIGEST_LENGTH + 1], struct smalti_error *error)
{
	struct smalti_model_options how = *model;
	how.precision = SMALTI_PRECISION_F32;
	const char *whole = model->directory ? model->directory : smalti_embedded_model(error);
	if (!whole)
		return -1;
	SCOPED(free) char *tokenizer = smalti_model_component(model->tokenizer, whole, "tokenizer", error);
	*directory = smalti_model_component(model->text_encoder, whole, "text_encoder", error);
	return tokenizer && *directory &&
		       smalti_prompt_encoder_open(encoder, task_group, tokenizer, *directory, &how, error) ==
			   0
		   ? smalti_prompt_encoder_digest(encoder, tokenizer, *directory, digest, error)
		   : -1;
}

static int check_ids(const struct smalti_prompt_encoder *encoder, const int32_t *ids, int64_t count,
		     struct smalti_error *error)
{
	const int64_t vocabulary = encoder->model->vocabulary;
	for (int64_t i = 0; i < count; i++)
		if (ids[i] < 0 || ids[i] >= vocabulary)
			return smalti_fail(error, SMALTI_EFORMAT,
					   "token id %" PRId32
					   " does not exist: the text encoder knows %" PRId64
					   "; tokenizer and text_encoder do not belong together",
					   ids[i], vocabulary);
	return 0;
}

int smalti_prompt_encoder_tokenize(const struct smalti_prompt_encoder *encoder, const char *text,
				   size_t length, enum smalti_cleaning cleaning, int32_t **ids,
				   int64_t *count, struct smalti_error *error)
{
	size_t prepared_length;
	SCOPED(free)
	char *prepared =
	    smalti_caption_prepare(encoder->cleaner, cleaning, text, length, &prepared_length, error);
	if (!prepared)
		return -1;
	const int status = smalti_tokenizer_encode(encoder->tokenizer, prepared, prepared_length,
						   encoder->max_tokens, ids, count, error);
	if (status == 0 && check_ids(encoder, *ids, *count, error) < 0) {
		free(*ids);
		*ids = NULL;
		return -1;
	}
	return status;
}
