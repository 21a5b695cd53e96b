/* SPDX-License-Identifier: Apache-2.0 */
#include "train/adapter_diffusers.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "graphs/parameters.h"

#define PREFIX "transformer."

/* Adds the configuration to the metadata, as a text whose keys begin with the prefix. */
static bool add_config(cJSON *metadata, const char *config)
{
	SCOPED(cJSON_Delete) cJSON *from = cJSON_Parse(config);
	SCOPED(cJSON_Delete) cJSON *keys = cJSON_CreateObject();
	bool ok = from && keys;
	for (const cJSON *item = ok ? from->child : NULL; item && ok; item = item->next) {
		SCOPED(free) char *key = smalti_format(NULL, PREFIX "%s", item->string);
		ok = key && cJSON_AddItemToObject(keys, key, cJSON_Duplicate(item, true));
	}
	SCOPED(free) char *text = ok ? cJSON_Print(keys) : NULL;
	return text && cJSON_AddStringToObject(metadata, "format", "pt") &&
	       cJSON_AddStringToObject(metadata, "lora_adapter_metadata", text);
}

static const void *values_at(void *user, int index, int64_t first, int64_t count, struct smalti_error *error)
{
	const struct smalti_safetensors *file = user;
	const struct smalti_tensor_view *view = &file->tensors[index];
	(void)count;
	(void)error;
	return (const char *)view->data + first * smalti_dtype_bytes(view->dtype);
}

/* Writes the tensors, in the file's order, under their other names. */
static int write_renamed(const struct smalti_safetensors *file, const cJSON *metadata, const char *path,
			 struct smalti_error *error)
{
	enum { NAME = 256 };
	SCOPED(free) struct smalti_tensor_view *views = smalti_calloc(file->count, sizeof(*views), error);
	SCOPED(free) char(*names)[NAME] = smalti_calloc(file->count, sizeof(*names), error);
	if (!views || !names)
		return -1;
	for (int64_t i = 0; i < file->count; i++) {
		snprintf(names[i], sizeof(names[i]), PREFIX "%s",
			 smalti_parameter_module(file->tensors[i].name));
		views[i] = file->tensors[i];
		views[i].name = names[i];
	}
	return smalti_safetensors_stream_with(path, metadata, views, (int)file->count, values_at,
					      (void *)file, error);
}

int smalti_adapter_write_diffusers(const char *weights, const char *config, const char *path,
				   struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *metadata = cJSON_CreateObject();
	if (!metadata || !add_config(metadata, config))
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for the metadata of %s", path);
	struct smalti_safetensors *file = smalti_safetensors_open(weights, error);
	int status = file ? write_renamed(file, metadata, path, error) : -1;
	if (file && smalti_safetensors_check(file, error) < 0)
		status = -1;
	smalti_safetensors_close(file);
	return status;
}
