/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/common_rows.h"
#include "cli/simulate.h"
#include "train/identity.h"

#define TYPE struct smalti_simulate_options

static const char *const grains[] = {"auto", "operation", "half-block", "block", "pass", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Machine")},
    {SMALTI_STRING(TYPE, machine), "machine", 'M', "FILE",
     "simulate the machine that this JSON file describes, or the one of that name that is shipped"},
    {SMALTI_STRING(TYPE, measured), "measured", 0, "TRACE,...",
     "tasks take what they took in these traces of real runs, as far as such tasks are there"},
    {SMALTI_STRING(TYPE, calibrate), "calibrate", 0, "FILE",
     "simulate nothing, but write to FILE the description of the machine that made the traces of --measured, "
     "whose models were of --precision"},
    {SMALTI_FLAG(TYPE, machines), "machines", 0, NULL, "list the machines that are shipped"},
    {SMALTI_STRING(TYPE, sched), "sched", 0, "POLICY,...",
     "StarPU scheduling policies, each simulated in turn; default: that of a run: lws; "
     "with GPUs dmdas, and CPUs that gain little do only what GPUs cannot"},
    {SMALTI_INT64(TYPE, cpus), "cpus", 0, "N", "number of CPU workers; 0: all that the machine has",
     .minimum = 0, .maximum = INT64_MAX},
    {SMALTI_INT64(TYPE, gpus), "gpus", 0, "N", "number of GPUs to compute on; -1: all that it has",
     .minimum = -1, .maximum = INT64_MAX},
    {SMALTI_BYTES(TYPE, gpu_memory_limit), "gpu-memory-limit", 0, "SIZE",
     "use at most SIZE of each GPU's memory", .minimum = 1 << 20, .maximum = INT64_MAX},
    {SMALTI_FLAG(TYPE, blocking), "blocking", 0, NULL,
     "GPUs compute nothing while data is on its way to them, as in programs whose exchanges block; over the "
     "machine's exchange_gbs, where it has them"},

    {SMALTI_GROUP("Work")},
    {SMALTI_STRING(TYPE, model), "model", 'm', "DIR",
     "directory of a PixArt pipeline in diffusers' layout, or without any weights sigma-256, sigma-512, "
     "sigma-1024, sigma-2k, alpha-512 or tiny; default: the embedded model"},
    SMALTI_PRECISION_ROW(TYPE, precision),
    {SMALTI_STRING(TYPE, request.prompt), "prompt", 'p', "TEXT", "the prompt; its length is what counts",
     SMALTI_GIVEN(TYPE, given.prompt)},
    {SMALTI_SIZE(TYPE, request.width, request.height), "size", 's', "WxH",
     "width and height in pixels, 16 to 131072 each; default: the model's; of extraction: those of the "
     "files, "
     "which are resized; default: the bin's",
     .minimum = SMALTI_SIDE_MIN, .maximum = SMALTI_SIDE_MAX},
    {SMALTI_INT64(TYPE, request.images), "images", 'i', "N", "number of images, all active at the same time",
     .minimum = 1, .maximum = SMALTI_IMAGES_MAX, SMALTI_GIVEN(TYPE, given.images)},
    {SMALTI_INT64(TYPE, request.steps), "steps", 0, "N",
     "number of denoising steps; of training: 2 if it is not given", .minimum = 1,
     .maximum = SMALTI_STEPS_MAX, SMALTI_GIVEN(TYPE, given.steps)},
    {SMALTI_DOUBLE(TYPE, request.guidance), "guidance", 'g', "X",
     "classifier-free guidance scale; 1 or less disables guidance", .real_minimum = 0, .real_maximum = 1000,
     SMALTI_GIVEN(TYPE, given.guidance)},
    {SMALTI_STRING(TYPE, request.scheduler), "scheduler", 0, "NAME",
     "diffusion scheduler, as of smalti generate; with some, such as heun, most steps have two passes"},
    SMALTI_TILE_TOKENS_ROW(TYPE, request.tile_tokens),
    SMALTI_TILE_ROWS_ROW(TYPE, request.tile_rows),
    {SMALTI_CHOICE(TYPE, request.grain), "grain", 0, "WHAT",
     "what a task of the transformer is, for a band of tokens", .choices = grains,
     SMALTI_GIVEN(TYPE, given.grain)},
    SMALTI_TOKEN_SHARES_ROW(TYPE, request.shares),
    SMALTI_STRATEGY_ROW(TYPE, request.strategy),
    SMALTI_PIPELINE_ROWS(TYPE, request),

    {SMALTI_GROUP("Training and extraction")},
    {SMALTI_INT64(TYPE, caption_tokens), "caption-tokens", 0, "N",
     "tokens of each caption; 0: 300, but of extraction no more than the model reads", .minimum = 0,
     .maximum = 4096, SMALTI_GIVEN(TYPE, given.caption_tokens)},
    {SMALTI_INT64(TYPE, extraction.items), "items", 0, "N", "items whose features are extracted",
     .minimum = 1, .maximum = 1 << 20, SMALTI_GIVEN(TYPE, given.items)},
    {SMALTI_INT64(TYPE, extraction.image_size), "img-size", 0, "N",
     "resolution of the aspect-ratio bins of the images, all of which are square", .minimum = 1,
     .maximum = INT32_MAX, SMALTI_GIVEN(TYPE, given.image_size)},
    {SMALTI_FLAG(TYPE, extraction.t5), "t5", 0, NULL,
     "extract T5 features of captions; default: these and the VAE's"},
    {SMALTI_FLAG(TYPE, extraction.vae), "vae", 0, NULL,
     "extract VAE features of images; default: these and T5's"},
    {SMALTI_INT64(TYPE, training.batch), "batch", 'b', "N", "samples of a step, all of one --size",
     .minimum = 1, .maximum = 1 << 20, SMALTI_GIVEN(TYPE, given.batch)},
    {SMALTI_INT64(TYPE, training.lanes), "lanes", 0, "N",
     "sums that the gradients of a step are added to; a part of --strategy data without one computes nothing",
     .minimum = 1, .maximum = 1 << 20, SMALTI_GIVEN(TYPE, given.lanes)},
    {SMALTI_INT64(TYPE, training.micro), "micro", 0, "N", "samples that are computed at a time; 0: chosen",
     .minimum = 0, .maximum = 1 << 20, SMALTI_GIVEN(TYPE, given.micro)},
    {SMALTI_CHOICE(TYPE, training.recomputation), "recompute", 0, "WHAT",
     "compute the activations of blocks again for the backward pass instead of keeping them",
     .choices = smalti_recomputations, SMALTI_GIVEN(TYPE, given.recomputation)},
    {SMALTI_CHOICE(TYPE, training.optimizer), "optimizer", 0, "NAME", "AdamW, or CAME with half its memory",
     .choices = smalti_optimizers, SMALTI_GIVEN(TYPE, given.optimizer)},
    {SMALTI_INT64(TYPE, training.lora_rank), "lora-rank", 0, "R",
     "train a LoRA adapter of rank R instead; 0: all of the transformer", .minimum = 0, .maximum = 4096},
    {SMALTI_STRING(TYPE, training.lora_targets), "lora-targets", 0, "NAMES",
     "matrices that the adapter changes, as of smalti train"},

    {SMALTI_GROUP("Output")},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL, "print one JSON object per simulation"},
    {SMALTI_STRING(TYPE, trace), "trace", 0, "FILE",
     "write a trace of all tasks, in simulated time, in the Chrome/Perfetto format"},
};

static const struct smalti_simulate_options defaults = {
    .request = {.prompt = "a red star above a blue ring",
		.images = 1,
		.steps = 20,
		.guidance = 4.5,
		.cleaning = SMALTI_CLEANING_BASIC},
    .gpus = -1,
    .training = {.batch = 8, .lanes = 8},
    .extraction = {.items = 256, .image_size = 512},
};

static const struct smalti_example examples[] = {
    {"Show what eight A100 would give",
     "smalti simulate --machine 8xA100-NVLink --model sigma-1024 --precision f16 "
     "--strategy ulysses"},
    {"Show what a step of training takes on two of them",
     "smalti simulate train --machine 2xA100-NVLink --model sigma-256 --precision bf16 --batch 16 "
     "--strategy data"},
    {"Show what extraction takes there",
     "smalti simulate extract --machine 2xA100-NVLink --model sigma-512 --precision bf16 --items 64"},
    {"Compare scheduling policies", "smalti simulate --machine A100-L40-T4 --model sigma-512 --precision f16 "
				    "--sched dmdas,dmda,lws"},
    {"Simulate this machine",
     "smalti generate -p 'a red star' -o star.png --grain operation --trace run.json && smalti simulate "
     "--measured run.json --calibrate mine.json && smalti simulate --machine ./mine.json --sched lws,dmda"},
    {NULL, NULL},
};

const struct smalti_command smalti_simulate_command = {
    .name = "smalti simulate",
    .summary = "generate images, train or extract features on a machine that is not there",
    .operands = "[train|extract]",
    .description =
	"Inserts the very graphs that smalti generate runs, without data, into StarPU's simulation of a "
	"machine, and "
	"shows how long they take there, how busy its workers are, what moves between its memories, and how "
	"much of them is used. Nothing is computed: a machine of eight GPUs is simulated on one core, and a "
	"model "
	"needs no weights.\n\nWith the operand train it does so for steps of smalti train on features that "
	"are "
	"stored: forward, backward and update. With the operand extract it does so for smalti extract: the "
	"text "
	"encoder over captions and the VAE over pictures, which CPUs decode.\n\nWhat an operation takes "
	"follows from its arithmetic and "
	"the bytes that it "
	"moves, and "
	"the machine's rates. Repeated simulations give the same times to the last digit. No schedule takes "
	"less "
	"than the three bounds: the work shared ideally among all workers, without transfers; the longest "
	"chain of tasks, each on the worker that is fastest at it, with what has to come from elsewhere "
	"between them; and the bytes that have to cross a link, over its rate.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = smalti_simulate_run,
};
