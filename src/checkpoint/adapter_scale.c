/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/adapter_scale.h"
#include "text/pattern.h"

#include <float.h>
#include <math.h>

enum { PEFT_ALPHA = 8, PATTERNS_MAX = 4096 };

struct smalti_adapter_pattern {
	struct smalti_pattern *module;
	double alpha;
};

/* Returns config[prefix + key]. */
static const cJSON *get(const cJSON *config, const char *prefix, const char *key)
{
	char name[64];
	snprintf(name, sizeof(name), "%s%s", prefix, key);
	return cJSON_GetObjectItemCaseSensitive(config, name);
}

static bool is_empty(const cJSON *item)
{
	return !item || cJSON_IsNull(item) || cJSON_IsFalse(item) ||
	       ((cJSON_IsArray(item) || cJSON_IsObject(item)) && !item->child);
}

static int check_kind(const cJSON *config, const char *prefix, struct smalti_error *error)
{
	static const char *const refused[] = {"modules_to_save", "layer_replication", "use_qalora",
					      "fan_in_fan_out", "lora_bias"};
	for (size_t i = 0; i < COUNT_OF(refused); i++)
		if (!is_empty(get(config, prefix, refused[i])))
			return smalti_fail(error, SMALTI_EUNSUPPORTED,
					   "\"%s%s\" is set, which is not supported: merge the adapter into "
					   "its model with peft's merge_and_unload(), and save that",
					   prefix, refused[i]);
	const cJSON *bias = get(config, prefix, "bias"), *type = get(config, prefix, "peft_type");
	if (cJSON_IsString(bias) && strcmp(bias->valuestring, "none") != 0)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "\"%sbias\" should be \"none\", found \"%.40s\": trained biases are not "
				   "supported",
				   prefix, bias->valuestring);
	if (cJSON_IsString(type) && strcmp(type->valuestring, "LORA") != 0)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "\"%speft_type\" should be \"LORA\", found \"%.40s\"", prefix,
				   type->valuestring);
	return 0;
}

static int add_pattern(struct smalti_adapter_scaling *scaling, const cJSON *item, struct smalti_error *error)
{
	if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
		return smalti_fail(error, SMALTI_EFORMAT, "\"alpha_pattern\": %.80s should be a number",
				   item->string);
	if (scaling->count == PATTERNS_MAX)
		return smalti_fail(error, SMALTI_EFORMAT, "\"alpha_pattern\" has more than %d patterns",
				   PATTERNS_MAX);
	if (smalti_grow(&scaling->patterns, scaling->count, sizeof(*scaling->patterns), error) < 0)
		return -1;
	SCOPED(free) char *expression = smalti_format(error, "(?:.*\\.)?(?:%s)\\z", item->string);
	struct smalti_pattern *module = expression ? smalti_pattern_new(expression, error) : NULL;
	if (!module)
		return -1;
	scaling->patterns[scaling->count++] = (struct smalti_adapter_pattern){module, item->valuedouble};
	return 0;
}

int smalti_adapter_scaling_read(struct smalti_adapter_scaling *scaling, const cJSON *config,
				const char *prefix, struct smalti_error *error)
{
	char alpha[64], stabilised[64];
	*scaling = (struct smalti_adapter_scaling){.known = true, .alpha = PEFT_ALPHA};
	snprintf(alpha, sizeof(alpha), "%slora_alpha", prefix);
	snprintf(stabilised, sizeof(stabilised), "%suse_rslora", prefix);
	if (check_kind(config, prefix, error) < 0 ||
	    smalti_json_double(config, alpha, SMALTI_JSON_NULLABLE, -FLT_MAX, FLT_MAX, &scaling->alpha,
			       error) < 0 ||
	    smalti_json_bool(config, stabilised, SMALTI_JSON_NULLABLE, &scaling->rank_stabilised, error) < 0)
		return -1;
	const cJSON *patterns = get(config, prefix, "alpha_pattern"), *item;
	if (!is_empty(patterns) && !cJSON_IsObject(patterns))
		return smalti_fail(error, SMALTI_EFORMAT, "\"%salpha_pattern\" should be an object", prefix);
	int status = 0;
	cJSON_ArrayForEach (item, patterns)
		status = status ? status : add_pattern(scaling, item, error);
	return status;
}

void smalti_adapter_scaling_free(struct smalti_adapter_scaling *scaling)
{
	for (int64_t i = 0; i < scaling->count; i++)
		smalti_pattern_free(scaling->patterns[i].module);
	free(scaling->patterns);
}

int smalti_adapter_scale(const struct smalti_adapter_scaling *scaling, const char *module, int64_t rank,
			 double *scale, struct smalti_error *error)
{
	double alpha = scaling->known ? scaling->alpha : (double)rank;
	struct smalti_string name = {0};
	int status = scaling->count ? smalti_string_copy(&name, module, strlen(module), error) : 0;
	bool found = false;
	for (int64_t i = 0; i < scaling->count && !found && status == 0; i++) {
		struct smalti_pattern_match match;
		status = smalti_pattern_match(scaling->patterns[i].module, &name, 0, &found, &match, error);
		if (found)
			alpha = scaling->patterns[i].alpha;
	}
	free(name.bytes);
	*scale = alpha / (scaling->rank_stabilised ? sqrt((double)rank) : (double)rank);
	return status;
}
