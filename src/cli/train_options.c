/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/common_rows.h"
#include "cli/predict.h"
#include "cli/train.h"
#include "smalti/generate.h"
#include "train/identity.h"
#include "train/run.h"

#define TYPE struct smalti_train_settings

static const char *const latents[] = {"sample", "mean", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Data")},
    {SMALTI_LIST(TYPE, caption_keys), "caption-key", 'k', "KEY[:WEIGHT]",
     "train on this caption of the features; repeat it, or separate keys by commas, for several, each taken "
     "as "
     "often as its weight says; default: all that the features have"},
    {SMALTI_DOUBLE(TYPE, train.data.drop), "caption-dropout", 0, "P",
     "probability that a caption is replaced by the empty one, which guidance needs", .real_minimum = 0,
     .real_maximum = 1},
    {SMALTI_CHOICE(TYPE, train.data.null_tokens), "null-tokens", 0, "WHICH",
     "what a dropped caption becomes: own, the features of the empty text's own token, as in generating; "
     "caption, as many rows as it has of the features of the padded empty text, as in PixArt's trainer",
     .choices = smalti_null_tokens},
    {SMALTI_CHOICE(TYPE, latents), "latents", 0, "WHAT",
     "train on samples of the VAE's posterior, drawn anew in every epoch, or on its mean",
     .choices = latents},
    {SMALTI_CHOICE(TYPE, train.data.bucketing), "bucket", 0, "HOW",
     "whether a batch has samples of any shape, or of one", .choices = smalti_bucketings},
    {SMALTI_CHOICE(TYPE, train.data.damage), "damaged", 0, "WHAT",
     "rows that are damaged: skip names them and leaves them out; refuse ends the run",
     .choices = smalti_damages},
    {SMALTI_INT64(TYPE, train.data.buffer), "shuffle-buffer", 0, "ROWS",
     "rows that the shuffled order draws from; 0: 1024", .minimum = 0, .maximum = INT32_MAX},
    {SMALTI_INT64(TYPE, train.data.prefetch), "prefetch", 0, "ROWS", "rows that are read ahead; 0: a batch",
     .minimum = 0, .maximum = 1 << 20},
    {SMALTI_STRING(TYPE, train.held_out), "held-out", 0, "DIR",
     "evaluate on these features, which are not trained on"},
    {SMALTI_INT64(TYPE, train.held_out_items), "held-out-items", 0, "N",
     "evaluate on the first N complete items only; 0: on all", .minimum = 0, .maximum = INT32_MAX},
    {SMALTI_INT64(TYPE, train.evaluate_every), "evaluate-every", 0, "STEPS",
     "evaluate every so many steps; 0: at the beginning and at the end", .minimum = 0, .maximum = INT32_MAX},

    {SMALTI_GROUP("Model")},
    {SMALTI_STRING(TYPE, train.model.directory), "model", 'm', "DIR",
     "directory of a pipeline in diffusers' layout, whose transformer is tuned; its VAE is not needed; "
     "default: the "
     "embedded model"},
    {SMALTI_STRING(TYPE, train.model.transformer), "transformer", 0, "DIR", "tune the transformer in DIR"},
    {SMALTI_STRING(TYPE, train.initial), "init", 0, "CONFIG",
     "train a transformer of this configuration (a config.json) from scratch"},
    SMALTI_TEXT_ENCODER_ROWS(TYPE, train.model),
    SMALTI_VARIANT_ROW(TYPE, train.model.variant),
    SMALTI_PRECISION_ROW(TYPE, train.model.precision),

    {SMALTI_GROUP("Adapter")},
    {SMALTI_INT64(TYPE, train.lora.rank), "lora-rank", 0, "R",
     "train a LoRA adapter of rank R instead, and leave the transformer as it is; 0: none", .minimum = 0,
     .maximum = 4096},
    {SMALTI_DOUBLE(TYPE, train.lora.alpha), "lora-alpha", 0, "A",
     "multiply the adapter's changes by A/R; 0: A is R", .real_minimum = 0, .real_maximum = 1e6},
    {SMALTI_STRING(TYPE, train.lora.targets), "lora-targets", 0, "NAMES",
     "matrices that the adapter changes: attention; all, those of PixArt's script; or last parts of their "
     "names, with commas"},

    {SMALTI_GROUP("Training")},
    {SMALTI_INT64(TYPE, train.steps), "steps", 's', "N", "steps to make in all", .minimum = 1,
     .maximum = INT32_MAX},
    {SMALTI_INT64(TYPE, train.batch), "batch", 'b', "N", "samples of a step", .minimum = 1,
     .maximum = 1 << 20},
    {SMALTI_SEED(TYPE, train.seed), "seed", 0, "N", "seed of the order and of all that is drawn; default 0"},
    {SMALTI_CHOICE(TYPE, train.optimizer.kind), "optimizer", 0, "NAME", "AdamW, or CAME with half its memory",
     .choices = smalti_optimizers},
    {SMALTI_DOUBLE(TYPE, train.optimizer.rate), "lr", 0, "RATE", "learning rate", .real_minimum = 0,
     .real_maximum = 1e6},
    {SMALTI_CHOICE(TYPE, train.optimizer.rule), "lr-rule", 0, "RULE",
     "given takes the rate as it is; sqrt and linear take it for a batch of 256, and scale it by that rule",
     .choices = smalti_rate_rules},
    {SMALTI_CHOICE(TYPE, train.optimizer.schedule), "schedule", 0, "NAME",
     "the rate after the warm-up: constant, or a cosine that ends with the last step",
     .choices = smalti_schedules},
    {SMALTI_INT64(TYPE, train.optimizer.warmup), "warmup", 0, "STEPS",
     "steps in which the rate grows from 0; the first has rate 0", .minimum = 0, .maximum = INT32_MAX},
    {SMALTI_STRING(TYPE, betas), "betas", 0, "A,B[,C]",
     "decay of the optimizer's averages; default: 0.9,0.999, with CAME 0.9,0.999,0.9999",
     SMALTI_GIVEN(TYPE, has_betas)},
    {SMALTI_STRING(TYPE, epsilons), "eps", 0, "A[,B]",
     "what the optimizer adds to keep clear of zero; default: 1e-10, with CAME 1e-30,1e-16",
     SMALTI_GIVEN(TYPE, has_epsilons)},
    {SMALTI_DOUBLE(TYPE, train.optimizer.weight_decay), "weight-decay", 0, "W",
     "decay of all weights; default: 0.03, with CAME 0", .real_minimum = 0, .real_maximum = 1e6,
     SMALTI_GIVEN(TYPE, has_weight_decay)},
    {SMALTI_CHOICE(TYPE, train.optimizer.groups), "came-groups", 0, "HOW",
     "with CAME: each tensor for itself as in the file, or q, k and v together as PixArt stacks them",
     .choices = smalti_came_groupings},
    {SMALTI_DOUBLE(TYPE, train.optimizer.clip), "clip", 0, "NORM",
     "scale gradients of a larger norm down to it; 0: none", .real_minimum = 0,
     .real_maximum = SMALTI_TRAIN_LARGEST},
    {SMALTI_DOUBLE(TYPE, train.ema), "ema", 0, "DECAY", "keep an average of the weights, too; 0: none",
     .real_minimum = 0, .real_maximum = 1},
    {SMALTI_DOUBLE(TYPE, train.min_snr), "min-snr", 0, "GAMMA",
     "weight the loss by min(SNR, GAMMA) / SNR, such as 5; 0: evenly", .real_minimum = 0,
     .real_maximum = 1e6},
    {SMALTI_FLAG(TYPE, train.fixed_variance), "fixed-variance", 0, NULL,
     "leave the variance that the model says out of the loss"},
    {SMALTI_DOUBLE(TYPE, train.loss_scale.initial), "loss-scale", 0, "S",
     "with f16: what the loss is multiplied by at first", .real_minimum = 0x1p-14, .real_maximum = 0x1p127},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, train.output), "output", 'o', "RUN",
     "directory of the run; an existing one is resumed"},
    {SMALTI_INT64(TYPE, train.save_every), "save-every", 0, "STEPS",
     "write a checkpoint every so many steps; 0: only at the end", .minimum = 0, .maximum = INT32_MAX},
    {SMALTI_INT64(TYPE, train.keep), "keep", 0, "N", "keep the last N checkpoints; 0: all", .minimum = 0,
     .maximum = INT32_MAX},
    {SMALTI_FLAG(TYPE, train.allow_change), "allow-change", 0, NULL,
     "go on although the options or the features are not those the run was begun with"},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL, "print the result as a JSON object on standard output"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},

    {SMALTI_GROUP("Sample images")},
    {SMALTI_LIST(TYPE, sample_prompts), "sample-prompt", 0, "TEXT",
     "generate an image from this prompt with the weights that the run has, or their average, as RUN/samples/"
     "step-N/1.png; repeat it for several images; the seed is the run's"},
    {SMALTI_INT64(TYPE, train.samples.every), "sample-every", 0, "STEPS",
     "generate them every so many steps, and write a checkpoint then; 0: at the beginning and at the end",
     .minimum = 0, .maximum = INT32_MAX},
    {SMALTI_SIZE(TYPE, train.samples.width, train.samples.height), "sample-size", 0, "WxH",
     "their size in pixels; default: the model's", .minimum = SMALTI_SIDE_MIN, .maximum = SMALTI_SIDE_MAX},
    {SMALTI_INT64(TYPE, train.samples.steps), "sample-steps", 0, "N", "their denoising steps", .minimum = 1,
     .maximum = SMALTI_STEPS_MAX},

    {SMALTI_GROUP("Machine")},
    {SMALTI_INT64(TYPE, train.lanes), "lanes", 0, "N",
     "sums that the gradients of a step are added to; decides the last bits, and how many processes can "
     "share a step",
     .minimum = 1, .maximum = 1 << 20},
    {SMALTI_INT64(TYPE, train.micro), "micro", 0, "N",
     "samples that are computed at a time; changes memory and speed, no bit; 0: chosen", .minimum = 0,
     .maximum = 1 << 20},
    {SMALTI_CHOICE(TYPE, train.recomputation), "recompute", 0, "WHAT",
     "compute the activations of blocks again for the backward pass instead of keeping them, which takes "
     "less memory and changes no bit: of none; of each block; auto: of as few as --memory-limit and the "
     "devices' memory allow",
     .choices = smalti_recomputations},
    SMALTI_TILE_TOKENS_ROW(TYPE, train.tile_tokens),
    {SMALTI_STRING(TYPE, train.strategy), "strategy", 0, "NAME",
     "spread a step over the devices: data (its samples), patch or ring (the tokens of a sample), tensor "
     "(heads and the MLP's columns, with the weights), or such as hybrid:data2.patch2; NAME may end in the "
     "number of parts"},
    {SMALTI_STRING(TYPE, train.shares), "shares", 0, "A:B:...",
     "with --strategy: the shares of the CPUs and of each device in turn; default: the devices' are equal"},
    SMALTI_SESSION_ROWS(TYPE),
    SMALTI_SCRATCH_ROW(TYPE),
    SMALTI_TRACE_ROW(TYPE),
    SMALTI_PREDICT_ROW(TYPE),
};

static const struct smalti_train_settings defaults = {
    .train = SMALTI_TRAIN_DEFAULTS,
    .session = SMALTI_SESSION_DEFAULTS,
};

static const struct smalti_example examples[] = {
    {"Tune the embedded model on extracted features", "smalti train features -o run --steps 1000"},
    {"Go on with a run that was stopped", "smalti train features -o run --steps 1000"},
    {"Tune PixArt-Sigma as its authors do",
     "smalti train features -m PixArt-Sigma-XL-2-512-MS -o run --optimizer came --clip 0.01 --lr-rule sqrt "
     "--warmup 1000 --batch 48 --precision bf16"},
    {"Compute half of each batch on each of two devices",
     "smalti train features -o run --opencl 2 --strategy data2"},
    {"Generate with the average of the weights",
     "smalti generate --transformer run/step-1000/ema -p \"a red ring on a white background\""},
    {"See what the run has learned every 500 steps",
     "smalti train features -o run --steps 5000 --sample-every 500 "
     "--sample-prompt \"a red ring on a white background\""},
    {"Train an adapter, and generate with it",
     "smalti train features -o style --lora-rank 16 --steps 1000 && "
     "smalti generate --lora style/step-1000/adapter -p \"a red ring on a white background\""},
    {"Train from scratch", "smalti train features --init config.json -o run --lr 1e-4 --steps 100000"},
    {NULL, NULL},
};

const struct smalti_command smalti_train_command = {
    .name = "smalti train",
    .summary = "train a transformer on extracted features",
    .operands = "FEATURES...",
    .description =
	"Tunes the transformer of a PixArt model, or trains one from scratch, on the features that smalti "
	"extract has "
	"written to the directories FEATURES, which are read as if they were one. All parameters are "
	"trained, or with --lora-rank an adapter.\n\n"
	"RUN/step-N are checkpoints: step-N/transformer and step-N/ema, the average of the weights, are in "
	"diffusers' "
	"layout, for smalti generate --transformer and others; the rest of it is what the next steps depend "
	"on. RUN/"
	"log.jsonl has a line for each step and each evaluation. RUN/samples has the sample images, which "
	"smalti report RUN shows, too.\n\n"
	"The same command continues an interrupted run from its last checkpoint, with the bits of a run that "
	"was never "
	"interrupted, whatever the number of workers. Other options or other features are refused.\n\n"
	"After SIGINT or SIGTERM the step is completed and a checkpoint is written.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = smalti_train_run,
};
