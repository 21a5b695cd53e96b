/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "jobs/precision.h"
#include "smalti/generate.h"
#include "smalti/train.h"
#include "train/run.h"

#include <math.h>

enum { MOST = 1 << 20, DIRECTORIES_MAX = 1 << 12, PROMPTS_MAX = 1 << 10, RANK_MAX = 1 << 12 };

void smalti_train_defaults(struct smalti_train_options *options)
{
	*options = (struct smalti_train_options)SMALTI_TRAIN_DEFAULTS;
}

static int check_counts(const struct smalti_train_options *o, struct smalti_error *error)
{
	const struct {
		const char *what;
		int64_t value, min, max;
	} numbers[] = {
	    {"number of directories of features", o->data.directory_count, 1, DIRECTORIES_MAX},
	    {"number of captions", o->data.caption_count, 0, SMALTI_FEATURES_CAPTIONS_MAX},
	    {"rows to shuffle", o->data.buffer, 0, INT32_MAX},
	    {"rows to read ahead", o->data.prefetch, 0, MOST},
	    {"null tokens", o->data.null_tokens, 0, SMALTI_NULL_TOKENS_CAPTION},
	    {"bucketing", o->data.bucketing, 0, SMALTI_BUCKET_SHAPE},
	    {"treatment of damaged rows", o->data.damage, 0, SMALTI_DAMAGE_REFUSE},
	    {"rank of the adapter", o->lora.rank, 0, RANK_MAX},
	    {"steps", o->steps, 1, INT32_MAX},
	    {"batch", o->batch, 1, MOST},
	    {"lanes", o->lanes, 1, MOST},
	    {"samples at a time", o->micro, 0, MOST},
	    {"recomputation", o->recomputation, 0, SMALTI_RECOMPUTE_AUTO},
	    {"tile-tokens", o->tile_tokens, 0, INT64_MAX},
	    {"optimizer", o->optimizer.kind, 0, SMALTI_OPTIMIZER_CAME},
	    {"rule of the rate", o->optimizer.rule, 0, SMALTI_RATE_LINEAR},
	    {"schedule", o->optimizer.schedule, 0, SMALTI_SCHEDULE_COSINE},
	    {"groups of CAME", o->optimizer.groups, 0, SMALTI_CAME_GROUPS_PIXART},
	    {"warm-up", o->optimizer.warmup, 0, INT32_MAX},
	    {"good steps before the loss scale grows", o->loss_scale.interval, 1, INT32_MAX},
	    {"steps between checkpoints", o->save_every, 0, INT32_MAX},
	    {"checkpoints to keep", o->keep, 0, INT32_MAX},
	    {"steps between evaluations", o->evaluate_every, 0, INT32_MAX},
	    {"items to evaluate on", o->held_out_items, 0, INT32_MAX},
	    {"prompts of sample images", o->samples.count, 0, PROMPTS_MAX},
	    {"steps between sample images", o->samples.every, 0, INT32_MAX},
	    {"width of sample images", o->samples.width, 0, SMALTI_SIDE_MAX},
	    {"height of sample images", o->samples.height, 0, SMALTI_SIDE_MAX},
	    {"denoising steps of sample images", o->samples.steps, 1, SMALTI_STEPS_MAX},
	};
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (smalti_check_range(numbers[i].value, numbers[i].min, numbers[i].max, numbers[i].what,
				       error) < 0)
			return -1;
	return smalti_precision_check(o->model.precision, SMALTI_PRECISION_F16, error);
}

static int check_numbers(const struct smalti_train_options *o, struct smalti_error *error)
{
	const struct smalti_optimizer_options *optimizer = &o->optimizer;
	const struct {
		const char *what;
		double value, min, max;
	} numbers[] = {
	    {"caption dropout", o->data.drop, 0, 1},
	    {"learning rate", optimizer->rate, 0, 1e6},
	    {"beta 1", optimizer->betas[0], 0, 1},
	    {"beta 2", optimizer->betas[1], 0, 1},
	    {"beta 3", optimizer->betas[2], 0, 1},
	    {"epsilon 1", optimizer->epsilons[0], 0, 1},
	    {"epsilon 2", optimizer->epsilons[1], 0, 1},
	    {"weight decay", optimizer->weight_decay, 0, 1e6},
	    {"limit of an update", optimizer->limit, 1e-6, 1e6},
	    {"limit of the gradient's norm", optimizer->clip, 0, 1e30},
	    {"gamma of min-SNR", o->min_snr, 0, 1e6},
	    {"decay of the average", o->ema, 0, 1},
	    {"alpha of the adapter", o->lora.alpha, 0, 1e6},
	    {"loss scale", o->loss_scale.initial, 0x1p-14, 0x1p127},
	    {"growth of the loss scale", o->loss_scale.growth, 1, 1e6},
	    {"backoff of the loss scale", o->loss_scale.backoff, 0, 1},
	};
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (!(numbers[i].value >= numbers[i].min && numbers[i].value <= numbers[i].max))
			return smalti_fail(error, SMALTI_EINVAL, "%s: expected %g to %g, found %g",
					   numbers[i].what, numbers[i].min, numbers[i].max, numbers[i].value);
	return 0;
}

int smalti_train_check(const struct smalti_train_options *o, struct smalti_error *error)
{
	if (smalti_check_given(o, "options of the training", error) < 0 || check_counts(o, error) < 0 ||
	    check_numbers(o, error) < 0 || smalti_check_given(o->data.directories, "features", error) < 0 ||
	    smalti_check_text(o->output, "directory for the run", error) < 0)
		return -1;
	if (o->lora.rank && o->initial)
		return smalti_fail(error, SMALTI_EINVAL,
				   "an adapter changes weights that there are: train one of a model "
				   "(--model, --transformer), or a transformer from scratch (--init)");
	if (o->lora.rank && smalti_check_text(o->lora.targets, "targets of the adapter", error) < 0)
		return -1;
	if (o->shares && !o->strategy)
		return smalti_fail(error, SMALTI_EINVAL, "shares: expected with a strategy only, found '%s'",
				   o->shares);
	for (int64_t i = 0; i < o->data.directory_count; i++)
		if (smalti_check_text(o->data.directories[i], "directory of features", error) < 0)
			return -1;
	for (int64_t i = 0; i < o->samples.count; i++)
		if (smalti_check_given(o->samples.prompts, "prompts of sample images", error) < 0 ||
		    smalti_check_given(o->samples.prompts[i], "prompt of a sample image", error) < 0)
			return -1;
	for (int i = 0; i < o->data.caption_count; i++)
		if (smalti_check_text(o->data.captions[i], "key of captions", error) < 0 ||
		    !(o->data.weights[i] > 0 && isfinite(o->data.weights[i])))
			return smalti_fail(error, SMALTI_EINVAL,
					   "weight of a caption: expected more than 0, found %g",
					   o->data.weights[i]);
	return 0;
}
