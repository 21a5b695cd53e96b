/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"

#include <math.h>

enum { MAX_CONFIG = 1 << 20, KEY_LENGTH = 128 };

/* The keys of T5's config.json, and those of the metadata behind "t5encoder." or "t5.". */
static const struct {
	const char *key, *metadata;
} t5_keys[] = {
    {"d_model", "embedding_length"},
    {"num_layers", "block_count"},
    {"d_ff", "feed_forward_length"},
    {"num_heads", "attention.head_count"},
    {"d_kv", "attention.key_length"},
    {"relative_attention_num_buckets", "attention.relative_buckets_count"},
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon"},
};

static const char *const t5_architectures[] = {"t5encoder", "t5", NULL};
static const char *const transformer_architectures[] = {"pixart", NULL};

/* Checks that a GGUF file is of one of these architectures, or names none. */
static int check_architecture(const struct smalti_checkpoint *weights, const char *const *architectures,
			      struct smalti_error *error)
{
	int index;
	if (smalti_json_choice(smalti_checkpoint_metadata(weights), "general.architecture",
			       SMALTI_JSON_NULLABLE, architectures, &index, error) == 0)
		return 0;
	smalti_error_prefix(error, "%s", weights->directory);
	return -1;
}

/* Returns the metadata's value for T5's key `i`; NULL: none. */
static const cJSON *t5_value(const cJSON *metadata, size_t i)
{
	const cJSON *value = NULL;
	for (const char *const *architecture = t5_architectures; *architecture && !value; architecture++) {
		char key[KEY_LENGTH];
		snprintf(key, sizeof(key), "%s.%s", *architecture, t5_keys[i].metadata);
		value = cJSON_GetObjectItemCaseSensitive(metadata, key);
	}
	return value;
}

/* Makes T5's config.json of the metadata and of the embedding's rows. */
static cJSON *t5_of_metadata(const struct smalti_checkpoint *weights, struct smalti_error *error)
{
	const cJSON *metadata = smalti_checkpoint_metadata(weights);
	const struct smalti_checkpoint_entry *embedding = smalti_checkpoint_entry(weights, "shared.weight");
	cJSON *config = cJSON_CreateObject();
	bool ok = config && cJSON_AddStringToObject(config, "feed_forward_proj", "gated-gelu");
	if (ok && embedding && embedding->view.rank == 2)
		ok = cJSON_AddNumberToObject(config, "vocab_size", (double)embedding->view.shape[0]);
	for (size_t i = 0; i < COUNT_OF(t5_keys) && ok; i++) {
		const cJSON *value = t5_value(metadata, i);
		ok = !value || cJSON_AddItemToObject(config, t5_keys[i].key, cJSON_Duplicate(value, true));
	}
	if (ok)
		return config;
	smalti_fail(error, SMALTI_ENOMEM, "no memory for a configuration");
	cJSON_Delete(config);
	return NULL;
}

/* Checks that config.json says what the metadata says. */
static int check_t5(const cJSON *config, const struct smalti_checkpoint *weights, struct smalti_error *error)
{
	const cJSON *metadata = smalti_checkpoint_metadata(weights);
	for (size_t i = 0; i < COUNT_OF(t5_keys); i++) {
		const cJSON *value = t5_value(metadata, i);
		const double told = smalti_json_number(config, t5_keys[i].key);
		if (!value || isnan(told))
			continue;
		if (!cJSON_IsNumber(value) || fabs(value->valuedouble - told) > 1e-6 * fabs(told))
			return smalti_fail(
			    error, SMALTI_EFORMAT,
			    "\"%s\" is %g, but the weights are of a model with %g: the file and the "
			    "weights do not belong together",
			    t5_keys[i].key, told, cJSON_IsNumber(value) ? value->valuedouble : (double)NAN);
	}
	return 0;
}

/* Reads the config.json of a component's directory; *file is NULL if there is none. */
static int read_file(const char *component, char **path, cJSON **file, struct smalti_error *error)
{
	*path = smalti_format(error, "%s/config.json", component);
	const int found = *path ? smalti_find_file(*path, error) : -1;
	if (found > 0)
		*file = smalti_json_read(*path, MAX_CONFIG, error);
	return found < 0 || (found && !*file) ? -1 : 0;
}

int smalti_t5_config_open(const char *component, const struct smalti_checkpoint *weights,
			  struct smalti_t5_config *config, struct smalti_error *error)
{
	SCOPED(free) char *path = NULL;
	SCOPED(cJSON_Delete) cJSON *file = NULL;
	SCOPED(cJSON_Delete) cJSON *made = NULL;
	if (check_architecture(weights, t5_architectures, error) || read_file(component, &path, &file, error))
		return -1;
	if (!file && !smalti_checkpoint_metadata(weights))
		return smalti_t5_config_read(path, config, error); /* says what is missing */
	if (!file)
		made = t5_of_metadata(weights, error);
	if (!file && !made)
		return -1;
	int status = smalti_t5_config_parse(file ? file : made, config, error);
	if (status == 0 && file)
		status = check_t5(file, weights, error);
	if (status)
		smalti_error_prefix(error, "%s", file ? path : weights->directory);
	return status;
}

int smalti_transformer_config_open(const char *component, const struct smalti_checkpoint *weights,
				   struct smalti_transformer_config *config, struct smalti_error *error)
{
	SCOPED(free) char *path = NULL;
	SCOPED(cJSON_Delete) cJSON *file = NULL;
	if (check_architecture(weights, transformer_architectures, error) ||
	    read_file(component, &path, &file, error))
		return -1;
	const cJSON *text =
	    cJSON_GetObjectItemCaseSensitive(smalti_checkpoint_metadata(weights), "pixart.config");
	if (file || !cJSON_IsString(text))
		return smalti_transformer_config_read(path, config, error);
	file = smalti_json_parse(text->valuestring, strlen(text->valuestring), error);
	const int status = file ? smalti_transformer_config_parse(file, config, error) : -1;
	if (status)
		smalti_error_prefix(error, "%s: \"pixart.config\"", weights->directory);
	return status;
}
