/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lora.h"
#include "jobs/adapters.h"

int smalti_lora_parse(const struct smalti_string_list *texts, struct smalti_model_options *model,
		      struct smalti_error *error)
{
	int64_t bytes = texts->count * (int64_t)sizeof(struct smalti_lora);
	for (int i = 0; i < texts->count; i++)
		bytes += (int64_t)strlen(texts->items[i]) + 1;
	struct smalti_lora *loras = texts->count ? smalti_calloc(bytes, 1, error) : NULL;
	if (!loras)
		return texts->count ? -1 : 0;
	model->loras = loras;
	model->lora_count = texts->count;
	char *copy = (char *)(loras + texts->count);
	int status = 0;
	for (int i = 0; i < texts->count && status == 0; i++) {
		memcpy(copy, texts->items[i], strlen(texts->items[i]) + 1);
		status = smalti_lora_read(copy, "--lora", &loras[i], error);
		copy += strlen(texts->items[i]) + 1;
	}
	return status;
}

void smalti_lora_free(struct smalti_model_options *model)
{
	free((void *)model->loras);
	model->loras = NULL;
	model->lora_count = 0;
}
