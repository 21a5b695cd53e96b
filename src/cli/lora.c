/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lora.h"
#include "base/parse.h"

enum { WEIGHT_MAX = 1000 };

/* Splits one text, in place. What follows the last colon is a weight if it is a number. */
static int parse(char *text, struct smalti_lora *lora, struct smalti_error *error)
{
	char *colon = strrchr(text, ':');
	*lora = (struct smalti_lora){.path = text, .weight = 1};
	if (colon && smalti_parse_double(colon + 1, -WEIGHT_MAX, WEIGHT_MAX, &lora->weight, NULL) == 0)
		*colon = 0;
	else
		lora->weight = 1;
	return *text ? 0 : smalti_fail(error, SMALTI_EINVAL, "--lora: expected PATH[:WEIGHT], found nothing");
}

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
		status = parse(copy, &loras[i], error);
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
