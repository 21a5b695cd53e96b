/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/decode.h"

#define TYPE struct smalti_decode_options

static const char *const formats[] = {"png", "ppm", NULL};
static const char *const depths[] = {"8", "16", NULL};

const char *const smalti_image_suffixes[] = {".png", ".ppm", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Latents")},
    {SMALTI_STRING(TYPE, key), "key", 'k', "NAME",
     "tensor of a safetensors file; default \"latents\", else the \"mean\" of smalti encode, or the only one "
     "there is"},
    {SMALTI_INT64(TYPE, index), "index", 'i', "N", "decode this one of several, counted from 0; default all",
     .minimum = 0, .maximum = INT64_MAX, SMALTI_GIVEN(TYPE, has_index)},
    {SMALTI_FLAG(TYPE, raw), "raw", 0, NULL,
     "latents are the VAE's own, as always for the \"mean\" beside a \"std\" of smalti encode; else they are "
     "the diffusion model's, scaled as the VAE's config.json says"},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, output), "output", 'o', "PATH",
     "the image's file, - for the standard output, or a directory (existing, or ending in '/'), where "
     "images are NAME.png or NAME-0.png, NAME-1.png, ... after the name of LATENTS"},
    {SMALTI_CHOICE(TYPE, format), "format", 0, "TYPE", "kind of file, whatever its name ends in (.png, .ppm)",
     .choices = formats, SMALTI_GIVEN(TYPE, has_format)},
    {SMALTI_CHOICE(TYPE, bits), "bits", 'b', "N", "bits of a sample", .choices = depths},
    SMALTI_VAE_REPORT_ROWS,

    SMALTI_VAE_ROWS,
};

static const struct smalti_decode_options defaults = {.vae = SMALTI_VAE_DEFAULTS};

static const struct smalti_example examples[] = {
    {"The image of latents that smalti generate kept", "smalti decode star.safetensors -o star.png"},
    {"Every latent of a batch, with 16 bits a sample", "smalti decode batch.npy --bits 16 -o images/"},
    {"The way back from smalti encode", "smalti decode photo.safetensors -o again.png"},
    {"An image to a pipe, by the VAE of another model",
     "smalti decode big.npy -m PixArt-Sigma-XL-2-512-MS --format ppm -o - | pnmtojpeg >big.jpg"},
    {"What an 8192x8192 image would take in 4 GB",
     "smalti decode latents-1024x1024.npy --memory-limit 4G --scratch /var/tmp --plan"},
    {NULL, NULL},
};

const struct smalti_command smalti_decode_command = {
    .name = "decode",
    .summary = "make images from latents",
    .operands = "LATENTS",
    .description =
	"Makes images from the latents [channels, height, width] or [images, channels, height, "
	"width] of a safetensors file or .npy file, with the VAE's decoder alone. Nothing is "
	"approximated, whatever the size: every row is computed with all that it depends on. An image "
	"is written row by row as it is decoded, and appears under its name when it is complete and safe "
	"on the disk.\n\n"
	"SIGINT or SIGTERM drop the image in work; those that were complete stay.",
    .options = SMALTI_OPTION_TABLE(rows),
    .examples = examples,
    .defaults = &defaults,
    .size = sizeof(defaults),
    .run = smalti_decode_run,
};
