/* SPDX-License-Identifier: Apache-2.0 */
#include "train/adapter_config.h"
#include "base/json.h"

static const char ENDING[] = ".lora_A.weight";

/* Adds the full names of the modules, so that no other has a name that ends like them. */
static void add_targets(cJSON *config, const struct smalti_parameters *parameters)
{
	cJSON *targets = cJSON_AddArrayToObject(config, "target_modules");
	for (int64_t i = 0; i < parameters->count; i++) {
		const char *name = smalti_parameter_module(parameters->list[i].name);
		const char *end = strstr(name, ENDING);
		SCOPED(free) char *module = end ? smalti_format(NULL, "%.*s", (int)(end - name), name) : NULL;
		if (module)
			cJSON_AddItemToArray(targets, cJSON_CreateString(module));
	}
}

char *smalti_adapter_config(const struct smalti_trainer *trainer, struct smalti_error *error)
{
	const struct smalti_model_options *model = &trainer->options->model;
	const struct smalti_lora_shape shape = smalti_lora_shape_of(trainer->options);
	const char *base = model->transformer ? model->transformer : model->directory;
	SCOPED(cJSON_Delete) cJSON *config = cJSON_CreateObject();
	cJSON_AddStringToObject(config, "peft_type", "LORA");
	cJSON_AddNullToObject(config, "task_type");
	if (base)
		cJSON_AddStringToObject(config, "base_model_name_or_path", base);
	else
		cJSON_AddNullToObject(config, "base_model_name_or_path");
	cJSON_AddNumberToObject(config, "r", (double)shape.rank);
	cJSON_AddNumberToObject(config, "lora_alpha", shape.alpha);
	cJSON_AddNumberToObject(config, "lora_dropout", 0);
	cJSON_AddStringToObject(config, "bias", "none");
	cJSON_AddFalseToObject(config, "use_rslora");
	cJSON_AddFalseToObject(config, "use_dora");
	add_targets(config, trainer->parameters);
	char *text = cJSON_Print(config);
	if (!text)
		smalti_fail(error, SMALTI_ENOMEM, "no memory for the adapter's configuration");
	return text;
}
