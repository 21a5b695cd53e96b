/* SPDX-License-Identifier: Apache-2.0 */
#include "train/identity.h"
#include "jobs/precision.h"
#include "kernels/isa.h"
#include "train/trainer.h"

const char *const smalti_optimizers[] = {"adamw", "came", NULL};
const char *const smalti_null_tokens[] = {"own", "caption", NULL};
const char *const smalti_came_groupings[] = {"file", "pixart", NULL};
const char *const smalti_schedules[] = {"constant", "cosine", NULL};
const char *const smalti_rate_rules[] = {"given", "sqrt", "linear", NULL};
const char *const smalti_bucketings[] = {"none", "shape", NULL};
const char *const smalti_damages[] = {"skip", "refuse", NULL};
const char *const smalti_recomputations[] = {"none", "block", "auto", NULL};

static void add(cJSON *object, const char *key, double value)
{
	cJSON_AddNumberToObject(object, key, value);
}

static void add_captions(cJSON *identity, const struct smalti_training_data_options *o)
{
	cJSON *captions = cJSON_AddObjectToObject(identity, "captions");
	for (int i = 0; i < o->caption_count; i++)
		add(captions, o->captions[i], o->weights[i]);
}

static void add_optimizer(cJSON *identity, const struct smalti_train_options *options)
{
	const struct smalti_optimizer_options *o = &options->optimizer;
	const bool came = o->kind == SMALTI_OPTIMIZER_CAME;
	cJSON *object = cJSON_AddObjectToObject(identity, "optimizer");
	cJSON_AddStringToObject(object, "kind", smalti_optimizers[o->kind]);
	cJSON_AddStringToObject(object, "rate_rule", smalti_rate_rules[o->rule]);
	cJSON_AddStringToObject(object, "schedule", smalti_schedules[o->schedule]);
	if (o->schedule == SMALTI_SCHEDULE_COSINE)
		add(object, "steps", (double)options->steps);
	add(object, "rate", o->rate);
	add(object, "warmup", (double)o->warmup);
	cJSON_AddItemToObject(object, "betas", cJSON_CreateDoubleArray(o->betas, came ? 3 : 2));
	cJSON_AddItemToObject(object, "epsilons", cJSON_CreateDoubleArray(o->epsilons, came ? 2 : 1));
	add(object, "weight_decay", o->weight_decay);
	add(object, "clip", o->clip);
	if (came) {
		add(object, "limit", o->limit);
		cJSON_AddStringToObject(object, "groups", smalti_came_groupings[o->groups]);
	}
}

static void add_precision(cJSON *identity, const struct smalti_train_options *o)
{
	cJSON_AddStringToObject(identity, "precision", smalti_precisions[o->model.precision]);
	if (o->model.precision != SMALTI_PRECISION_F16)
		return;
	cJSON *scale = cJSON_AddObjectToObject(identity, "loss_scale");
	add(scale, "initial", o->loss_scale.initial);
	add(scale, "growth", o->loss_scale.growth);
	add(scale, "backoff", o->loss_scale.backoff);
	add(scale, "interval", (double)o->loss_scale.interval);
}

static void add_lora(cJSON *identity, const struct smalti_train_options *options)
{
	const struct smalti_lora_shape shape = smalti_lora_shape_of(options);
	cJSON *object = cJSON_AddObjectToObject(identity, "lora");
	add(object, "rank", (double)shape.rank);
	add(object, "alpha", shape.alpha);
	cJSON_AddStringToObject(object, "targets", shape.targets);
}

/* Adds the seed as text: JSON's numbers do not hold 2^64 exactly. */
static void add_seed(cJSON *identity, uint64_t seed)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, seed);
	cJSON_AddStringToObject(identity, "seed", text);
}

cJSON *smalti_training_identity(const struct smalti_train_options *options,
				const struct smalti_training_data *data, const char *weights,
				struct smalti_error *error)
{
	const struct smalti_training_data_options *o = &options->data;
	cJSON *identity = cJSON_CreateObject(), *features = smalti_training_data_identity(data);
	cJSON_AddItemToObject(identity, "features", features);
	cJSON_AddStringToObject(identity, "weights", weights);
	add_captions(identity, o);
	add(identity, "caption_dropout", o->drop);
	cJSON_AddStringToObject(identity, "null_tokens", smalti_null_tokens[o->null_tokens]);
	cJSON_AddStringToObject(identity, "latents", o->mean_latents ? "mean" : "sample");
	cJSON_AddStringToObject(identity, "bucket", smalti_bucketings[o->bucketing]);
	add(identity, "shuffle_buffer", (double)o->buffer);
	add_seed(identity, options->seed);
	add(identity, "batch", (double)options->batch);
	add(identity, "lanes", (double)options->lanes);
	add(identity, "tile_tokens", (double)options->tile_tokens);
	if (options->strategy) {
		cJSON_AddStringToObject(identity, "strategy", options->strategy);
		cJSON_AddStringToObject(identity, "shares", options->shares ? options->shares : "equal");
	}
	cJSON_AddBoolToObject(identity, "fixed_variance", options->fixed_variance);
	add(identity, "min_snr", options->min_snr);
	if (options->lora.rank)
		add_lora(identity, options);
	add_optimizer(identity, options);
	add(identity, "ema", options->ema);
	add_precision(identity, options);
	add(identity, "arithmetic", SMALTI_TRAINING_ARITHMETIC);
	if (features && cJSON_AddStringToObject(identity, "isa", smalti_isa_name(smalti_isa())))
		return identity;
	cJSON_Delete(identity);
	smalti_fail(error, SMALTI_ENOMEM, "no memory for a description of the run");
	return NULL;
}

static const struct smalti_identity_remedy remedies[] = {
    {"features", "the directories of features (or --allow-change to go on with others)"},
    {"weights", "--model, --transformer or --init"},
    {"captions", "--caption-key"},
    {"caption_dropout", "--caption-dropout"},
    {"null_tokens", "--null-tokens"},
    {"latents", "--latents"},
    {"bucket", "--bucket"},
    {"shuffle_buffer", "--shuffle-buffer"},
    {"fixed_variance", "--fixed-variance"},
    {"min_snr", "--min-snr"},
    {"optimizer.kind", "--optimizer"},
    {"optimizer.rate", "--lr"},
    {"optimizer.rate_rule", "--lr-rule"},
    {"optimizer.schedule", "--schedule"},
    {"optimizer.steps", "--steps"},
    {"optimizer.warmup", "--warmup"},
    {"optimizer.betas", "--betas"},
    {"optimizer.epsilons", "--eps"},
    {"optimizer.weight_decay", "--weight-decay"},
    {"optimizer.clip", "--clip"},
    {"optimizer.groups", "--came-groups"},
    {"loss_scale", "--loss-scale"},
    {"tile_tokens", "--tile-tokens"},
    {"strategy", "--strategy"},
    {"shares", "--shares"},
    {"seed", "--seed"},
    {"batch", "--batch"},
    {"lanes", "--lanes"},
    {"ema", "--ema"},
    {"lora.rank", "--lora-rank"},
    {"lora.alpha", "--lora-alpha"},
    {"lora.targets", "--lora-targets"},
    {"lora", "--lora-rank"},
    {"precision", "--precision"},
    {NULL, NULL},
};

static bool accepts(void *user, const char *key)
{
	(void)user;
	return strcmp(key, "isa") == 0 || strcmp(key, "arithmetic") == 0;
}

const struct smalti_identity_rules smalti_training_rules = {.remedies = remedies, .accepts = accepts};
