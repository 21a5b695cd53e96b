/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "cli/common_rows.h"
#include "cli/generate.h"
#include "cli/output.h"
#include "cli/predict.h"
#include "samplers/sampler.h"

#define TYPE struct smalti_generate_options

static const char *const grains[] = {"auto", "operation", "half-block", "block", "pass", NULL};
static const char *const posteriors[] = {"sample", "mean", NULL};
static const char *const noises[] = {"f32", "f16", "bf16", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Prompts")},
    {SMALTI_LIST(TYPE, prompt), "prompt", 'p', "TEXT", "generate an image from TEXT"},
    {SMALTI_STRING(TYPE, prompts), "prompts", 'P', "FILE",
     "read prompts from FILE, one per line (- for standard input): plain text, or JSON Lines with \"prompt\" "
     "and, to override the options given here, \"id\", \"negative_prompt\", \"seed\", \"width\", \"height\", "
     "\"num_inference_steps\", \"num_images_per_prompt\", \"guidance_scale\", \"scheduler\", \"eta\", "
     "\"image\", \"strength\", \"mask\", \"keep_original\", "
     "\"use_resolution_binning\", \"lora\", \"step_cache\""},
    {SMALTI_STRING(TYPE, request.negative_prompt), "negative", 'n', "TEXT",
     "negative prompt: what the images should not show", .alias = "negative-prompt"},
    SMALTI_CLEANING_ROW(TYPE, request.cleaning, "prompts"),

    {SMALTI_GROUP("Images")},
    {SMALTI_SIZE(TYPE, request.width, request.height), "size", 's', "WxH",
     "width and height in pixels, 16 to 131072 each; default: the model's", .minimum = SMALTI_SIDE_MIN,
     .maximum = SMALTI_SIDE_MAX, SMALTI_GIVEN(TYPE, has_size)},
    {SMALTI_INT64(TYPE, request.width), "width", 0, "N", "width in pixels", .minimum = SMALTI_SIDE_MIN,
     .maximum = SMALTI_SIDE_MAX, SMALTI_GIVEN(TYPE, has_size)},
    {SMALTI_INT64(TYPE, request.height), "height", 0, "N", "height in pixels", .minimum = SMALTI_SIDE_MIN,
     .maximum = SMALTI_SIDE_MAX, SMALTI_GIVEN(TYPE, has_size)},
    {SMALTI_FLAG(TYPE, request.resolution_binning), "resolution-binning", 0, NULL,
     "generate at the nearest aspect ratio that the model was trained at, then resize and crop to the "
     "requested size, as diffusers does by default; without this option the requested size is used as it is",
     .alias = "use-resolution-binning"},
    {SMALTI_SEED(TYPE, request.seed), "seed", 0, "N", "seed of the noise, from -2^63 to 2^64-1; default 0"},
    {SMALTI_INT64(TYPE, request.images), "images", 'i', "N",
     "number of images per prompt, all different; default 1", .minimum = 1, .maximum = SMALTI_IMAGES_MAX,
     SMALTI_GIVEN(TYPE, has_images), .alias = "num-images-per-prompt"},
    {SMALTI_INT64(TYPE, request.steps), "steps", 0, "N", "number of denoising steps", .minimum = 1,
     .maximum = SMALTI_STEPS_MAX, .alias = "num-inference-steps"},
    {SMALTI_DOUBLE(TYPE, request.guidance), "guidance", 'g', "X",
     "classifier-free guidance scale; 1 or less disables guidance and the negative prompt", .real_minimum = 0,
     .real_maximum = 1000, .alias = "guidance-scale"},
    {SMALTI_STRING(TYPE, request.scheduler), "scheduler", 0, "NAME",
     "diffusion scheduler: dpm++, \"dpm++ karras\", \"dpm++ 3m\", \"dpm++ 3m karras\", \"dpm++ sde\", "
     "\"dpm++ sde karras\", dpm, unipc, \"unipc karras\", euler, \"euler karras\", \"euler a\", heun, "
     "\"heun karras\", ddim, ddpm, lcm, sa-solver, dmd; of models that predict the flow: \"flow euler\", "
     "\"flow heun\"; default: the model's"},
    {SMALTI_DOUBLE(TYPE, request.eta), "eta", 0, "X",
     "of --scheduler ddim: the share of noise that each step adds", .real_minimum = 0, .real_maximum = 1},
    {SMALTI_STRING(TYPE, request.step_cache), "step-cache", 0, "RULE",
     "skip most of the transformer in steps that change little: bound:X, where the error of a step is by a "
     "measured table at most X; first-block:X, where the first block's change differs at most by X"},
    {SMALTI_CHOICE(TYPE, request.noise), "noise", 0, "TYPE",
     "data type in which the initial noise is drawn; each type gives different images", .choices = noises},
    {SMALTI_STRING(TYPE, latents), "latents", 0, "FILE",
     "start from the latents in this safetensors or .npy file instead of noise; --size and --images default "
     "to theirs"},

    {SMALTI_GROUP("Image to image")},
    {SMALTI_STRING(TYPE, image), "image", 0, "FILE",
     "begin with this image, resized to the size that is generated, instead of noise: JPEG, PNG or WebP"},
    {SMALTI_DOUBLE(TYPE, request.strength), "strength", 0, "X",
     "share of the steps that are taken from the image on, above 0 to 1: more changes more; default 0.8, "
     "with "
     "--mask 1",
     .real_minimum = 0, .real_maximum = 1},
    {SMALTI_STRING(TYPE, mask), "mask", 0, "FILE",
     "repaint the image only where this image is white; where it is black, the image stays, but for what the "
     "VAE changes"},
    {SMALTI_FLAG(TYPE, request.keep_original), "keep-original", 0, NULL,
     "with --mask: take the pixels that stay from the image itself"},
    {SMALTI_CHOICE(TYPE, request.posterior), "posterior", 0, "TYPE",
     "the image's latents: a sample of those that the VAE gives, as diffusers does, or their mean",
     .choices = posteriors},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, output), "output", 'o', "PATH",
     "write the image to this PNG file, to standard output (-), or to a directory (existing, or ending in "
     "'/') as ID.png or ID-0.png, ID-1.png, ...; ID is the prompt's \"id\" or line number; default image.png "
     "for a single image"},
    {SMALTI_FLAG(TYPE, save_latents), "save-latents", 0, NULL,
     "also save the final latents, as a safetensors file beside each image"},
    {SMALTI_FLAG(TYPE, resume), "resume", 'r', NULL,
     "skip images that exist and were generated with the same parameters; remove temporary files of "
     "interrupted runs"},
    {SMALTI_FLAG(TYPE, share), "share", 0, NULL,
     "share the --prompts file with all processes that run this command, on any machines that see the "
     "directory: each makes a part, and skips images that exist"},
    {SMALTI_INT64(TYPE, lease_seconds), "lease", 0, "SECONDS",
     "with --share: seconds without activity after which the work of a process on another machine is taken "
     "over",
     .minimum = 2, .maximum = 86400},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL, "print one JSON object per image on standard output"},
    {SMALTI_FLAG(TYPE, plan), "plan", 0, NULL,
     "only print, for each prompt, the strategy and what each device computes, receives and holds"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},

    {SMALTI_GROUP("Model")},
    SMALTI_MODEL_ROW(TYPE, model.directory),
    SMALTI_VARIANT_ROW(TYPE, model.variant),
    SMALTI_PRECISION_ROW(TYPE, model.precision),
    SMALTI_LORA_ROW(TYPE, lora),
    SMALTI_TEXT_ENCODER_ROWS(TYPE, model),
    {SMALTI_STRING(TYPE, model.transformer), "transformer", 0, "DIR",
     "load the transformer from DIR, or from a .gguf file"},
    {SMALTI_STRING(TYPE, model.vae), "vae-model", 0, "DIR", "load the VAE from DIR", .alias = "vae"},
    {SMALTI_STRING(TYPE, model.scheduler), "scheduler-config", 0, "DIR",
     "load the scheduler's configuration from DIR"},
    {SMALTI_STRING(TYPE, model.step_cache_table), "step-cache-table", 0, "FILE",
     "tables of smalti step-cache for --step-cache bound:X; default: step_cache.json in the model's "
     "directory"},

    {SMALTI_GROUP("Machine")},
    SMALTI_SESSION_ROWS(TYPE),
    SMALTI_SCRATCH_ROW(TYPE),
    SMALTI_TILE_TOKENS_ROW(TYPE, request.tile_tokens),
    SMALTI_TILE_ROWS_ROW(TYPE, request.tile_rows),
    {SMALTI_CHOICE(TYPE, request.grain), "grain", 0, "WHAT",
     "what a task of the transformer is, for a band of tokens; auto joins operations that are too small to "
     "be "
     "tasks",
     .choices = grains},
    SMALTI_TOKEN_SHARES_ROW(TYPE, request.shares),
    SMALTI_STRATEGY_ROW(TYPE, request.strategy),
    SMALTI_PIPELINE_ROWS(TYPE, request),
    SMALTI_TRACE_ROW(TYPE),
    SMALTI_PREDICT_ROW(TYPE),
};

static const struct smalti_generate_options defaults = {
    .request = {.images = 1, .steps = 20, .guidance = 4.5, .cleaning = SMALTI_CLEANING_BASIC},
    .session = SMALTI_SESSION_DEFAULTS,
    .lease_seconds = 300,
};

static const struct smalti_example examples[] = {
    {"Generate one image", "smalti generate -p 'a red star on a white background' -o star.png"},
    {"Generate four images from one prompt",
     "smalti generate -p 'a green ring on a white background' --images 4 -o rings/"},
    {"Generate one image per line of a file, and continue an interrupted run",
     "smalti generate --prompts prompts.jsonl -o images/ --resume"},
    {"Make the same images with several processes or machines: start it on each",
     "smalti generate --prompts prompts.jsonl -o /shared/images/ --share"},
    {"Use another model, size and scheduler",
     "smalti generate -m PixArt-Sigma-XL-2-512-MS -s 768x512 --scheduler euler -p 'a lighthouse'"},
    {"Change an image, or repaint the white parts of a mask in it",
     "smalti generate --image photo.jpg --mask mask.png -p 'a yellow heart' -o changed.png"},
    {"Skip steps whose error is bounded",
     "smalti generate --step-cache bound:0.04 -p 'a red star on a white background'"},
    {"Write the image to a pipe",
     "smalti generate -p 'a large yellow heart on a blue background' -o - | display"},
    {"Show what a strategy has each device compute, receive and hold",
     "smalti generate -p 'a lighthouse' --strategy ulysses2 --plan"},
    {NULL, NULL},
};

const struct smalti_command smalti_generate_command = {
    .name = "smalti generate",
    .summary = "generate images from prompts",
    .operands = "",
    .description =
	"Generates images from prompts. Several images are computed at the same time; each file appears "
	"under its name when it is complete and stored safely on disk. The request, the model, the precision "
	"and the tiling determine every bit of an image. The scheduling policy, the number of workers and "
	"other requests do not change it. With GPUs that needs --reproducible.\n\nAfter SIGINT or SIGTERM "
	"the images in progress are finished; a "
	"second signal drops them. --resume continues an interrupted run.\n\nWith --share any number of "
	"processes make the images of one list. Each claims some lines at a time; it may begin late, or be "
	"killed, and others do what it leaves. The same command continues an interrupted run, and tries "
	"failed images again.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = smalti_generate_run,
};

static int check_scheduler(const char *name, struct smalti_error *error)
{
	if (!name || smalti_sampler_name_find(name, error))
		return 0;
	smalti_error_prefix(error, "--scheduler");
	return -1;
}

static int check_text(const char *option, const char *text, struct smalti_error *error)
{
	if (!text || smalti_utf8_valid(text, strlen(text)))
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "%s: the text is not UTF-8", option);
}

static bool is_auto(const char *text)
{
	return text && strcmp(text, "auto") == 0;
}

/* Several processes need a list that each can read from any line on, and equal bits. */
static int check_share(const struct smalti_generate_options *options, struct smalti_error *error)
{
	const struct smalti_request *request = &options->request;
	if (!options->prompts)
		return smalti_fail(error, SMALTI_EINVAL, "--share: needs a list: give --prompts FILE");
	if (strcmp(options->prompts, "-") == 0)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "--share: standard input can be read by one process alone, and only once: "
		    "write the prompts to a file that all processes see, and give --prompts FILE");
	if (is_auto(request->strategy) || is_auto(request->shares))
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "--share: --strategy auto and --shares auto may choose otherwise on another "
		    "machine: name what all should use");
	return 0;
}

/* Refuses what simulations of images do not know. */
static int check_prediction(const struct smalti_generate_options *o, struct smalti_error *error)
{
	const struct smalti_unpredicted unknown[] = {
	    {"--prompts", o->prompts != NULL},
	    {"--image", o->image != NULL},
	    {"--lora", o->lora.count > 0},
	    {"--step-cache", o->request.step_cache != NULL},
	    {"--transformer", o->model.transformer != NULL},
	    {"--text-encoder", o->model.text_encoder != NULL},
	    {"--text-encoder-precision", o->model.text_encoder_precision != SMALTI_TEXT_ENCODER_STORED},
	    {"--vae-model", o->model.vae != NULL}};
	return smalti_predict_check(o->predict, unknown, COUNT_OF(unknown), error);
}

int smalti_generate_check(const struct smalti_generate_options *options, struct smalti_error *error)
{
	if (!options->prompt.count == !options->prompts)
		return smalti_fail(error, SMALTI_EINVAL,
				   options->prompts ? "--prompt and --prompts exclude each other"
						    : "no prompt: give --prompt or --prompts");
	if (options->share && check_share(options, error) < 0)
		return -1;
	if (options->output && !*options->output)
		return smalti_fail(error, SMALTI_EINVAL, "-o: expected a path, found nothing");
	for (int i = 0; i < options->prompt.count; i++)
		if (check_text("--prompt", options->prompt.items[i], error) < 0)
			return -1;
	if (check_text("--negative", options->request.negative_prompt, error) < 0 ||
	    check_scheduler(options->request.scheduler, error) < 0 || check_prediction(options, error) < 0)
		return -1;
	return smalti_check_stdout(options->output, options->json || options->save_latents || options->resume,
				   "--json, --save-latents or --resume", error);
}
