/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_fields.h"
#include "checkpoint/config.h"

static const char *const model_types[] = {"t5", NULL};
/* 1.6: "gated-X" multiplies X of one product by another; transformers takes "gated-gelu" as the tanh form. */
static const char *const feed_forwards[] = {"gated-gelu", "gated-gelu_new", NULL};

#define CONFIG struct smalti_t5_config

static const struct smalti_field fields[] = {
    {FIELD_ONLY("model_type", OPTIONAL, model_types)},
    {FIELD_ONLY("feed_forward_proj", REQUIRED, feed_forwards)},
    {FIELD_INT("num_layers", REQUIRED, layers, 1, 1000)},
    {FIELD_INT("vocab_size", REQUIRED, vocabulary, 1, 1 << 24)},
    {FIELD_INT("d_model", REQUIRED, width, 1, 65536)},
    {FIELD_INT("num_heads", REQUIRED, heads, 1, 1024)},
    {FIELD_INT("d_kv", REQUIRED, head_dim, 1, 1024)},
    {FIELD_INT("d_ff", REQUIRED, ff_width, 1, 1 << 20)},
    {FIELD_INT("relative_attention_num_buckets", OPTIONAL, buckets, 4, 65536)},
    {FIELD_INT("relative_attention_max_distance", OPTIONAL, max_distance, 2, 1 << 24)},
    {FIELD_DOUBLE("layer_norm_epsilon", OPTIONAL, norm_eps, 1e-30, 1)},
    {FIELD_INT("pad_token_id", OPTIONAL, pad_id, 0, 1 << 24)},
    {FIELD_INT("eos_token_id", OPTIONAL, eos_id, 0, 1 << 24)},
};

/* Checks the buckets: half are for each direction, half of those for one distance each (2.2). */
static int check_buckets(const struct smalti_t5_config *config, struct smalti_error *error)
{
	if (config->buckets % 2 || config->max_distance <= config->buckets / 4)
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "\"relative_attention_num_buckets\" %lld should be even and less than four "
		    "times \"relative_attention_max_distance\" %lld",
		    (long long)config->buckets, (long long)config->max_distance);
	return 0;
}

int smalti_t5_config_parse(const cJSON *file, struct smalti_t5_config *config, struct smalti_error *error)
{
	*config =
	    (struct smalti_t5_config){.buckets = 32, .max_distance = 128, .norm_eps = 1e-6, .eos_id = 1};
	if (smalti_fields_read(file, fields, COUNT_OF(fields), config, error))
		return -1;
	config->inner = config->heads * config->head_dim;
	if (config->pad_id >= config->vocabulary || config->eos_id >= config->vocabulary)
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "\"pad_token_id\" and \"eos_token_id\" should be below \"vocab_size\" %lld",
		    (long long)config->vocabulary);
	return check_buckets(config, error);
}

CONFIG_READER(smalti_t5_config)
