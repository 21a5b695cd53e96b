/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/encode.h"

#define TYPE struct smalti_encode_options

static const char *const formats[] = {"safetensors", "npy", NULL};

const char *const smalti_latents_suffixes[] = {".safetensors", ".npy", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Latents")},
    {SMALTI_FLAG(TYPE, sample), "sample", 0, NULL,
     "draw latents, mean + std x noise, in the diffusion model's scale, too"},
    {SMALTI_SEED(TYPE, seed), "seed", 0, "N",
     "seed of that noise, which is torch's: -2^63 to 2^64-1; default 0", SMALTI_GIVEN(TYPE, has_seed)},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, output), "output", 'o', "FILE", "the latents' file, or - for the standard output"},
    {SMALTI_CHOICE(TYPE, format), "format", 0, "TYPE",
     "kind of file, whatever its name ends in (.safetensors, .npy)", .choices = formats,
     SMALTI_GIVEN(TYPE, has_format)},
    SMALTI_VAE_REPORT_ROWS,

    SMALTI_VAE_ROWS,
};

static const struct smalti_encode_options defaults = {.vae = SMALTI_VAE_DEFAULTS};

static const struct smalti_example examples[] = {
    {"Mean and deviation of a photograph's latents", "smalti encode photo.jpg -o photo.safetensors"},
    {"Several images of one size in one file", "smalti encode frames/*.png -o frames.safetensors"},
    {"Latents as a diffusion model takes them", "smalti encode photo.jpg --sample --seed 3 -o photo.npy"},
    {NULL, NULL},
};

const struct smalti_command smalti_encode_command = {
    .name = "encode",
    .summary = "make latents from images",
    .operands = "PICTURE...",
    .description =
	"Makes the distribution of an image's latents with the VAE's encoder alone, exactly, whatever "
	"the size. Images are JPEG, PNG or WebP files; they are turned as their EXIF orientation says, "
	"transparency is dropped, and sides that are not a multiple of the VAE's factor (8) lose as much "
	"at both ends.\n\n"
	"A safetensors file gets the tensors \"mean\" and \"std\" [channels, height, width], unscaled as "
	"in feature files, and \"latents\" with --sample; of several images, which then have one size, "
	"[images, channels, height, width]. An .npy file gets one array: the means, or with --sample "
	"the latents.",
    .options = SMALTI_OPTION_TABLE(rows),
    .examples = examples,
    .defaults = &defaults,
    .size = sizeof(defaults),
    .run = smalti_encode_run,
};
