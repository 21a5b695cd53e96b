/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/decode.h"

#define TYPE struct smalti_decode_options

static const char *const formats[] = {"png", "ppm", NULL};
static const char *const depths[] = {"8", "16", NULL};

const char *const smalti_image_suffixes[] = {".png", ".ppm", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Latents")},
    {SMALTI_STRING(TYPE, key), "key", 'k', "NAME",
     "name of the tensor in a safetensors file; default: \"latents\", else \"mean\" as written by smalti "
     "encode, else the only tensor"},
    {SMALTI_INT64(TYPE, index), "index", 'i', "N",
     "decode only image N of a batch, counted from 0; default: all", .minimum = 0, .maximum = INT64_MAX,
     SMALTI_GIVEN(TYPE, has_index)},
    {SMALTI_FLAG(TYPE, raw), "raw", 0, NULL,
     "take the latents as unscaled, as the VAE's encoder gives them; default for the \"mean\" of smalti "
     "encode; otherwise they are in the diffusion model's scale"},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, output), "output", 'o', "PATH",
     "write the image to this file, to standard output (-), or to a directory (existing, or ending in '/') "
     "as NAME.png or NAME-0.png, NAME-1.png, ...; NAME is the name of LATENTS without its suffix"},
    {SMALTI_CHOICE(TYPE, format), "format", 0, "TYPE",
     "file format; default: by the file name's suffix, .png or .ppm", .choices = formats,
     SMALTI_GIVEN(TYPE, has_format)},
    {SMALTI_CHOICE(TYPE, bits), "bits", 'b', "N", "bits per sample", .choices = depths},
    SMALTI_VAE_REPORT_ROWS,

    SMALTI_VAE_ROWS,
};

static const struct smalti_decode_options defaults = {.vae = SMALTI_VAE_DEFAULTS};

static const struct smalti_example examples[] = {
    {"Decode latents that smalti generate saved", "smalti decode star.safetensors -o star.png"},
    {"Decode a batch to images of 16 bits per sample", "smalti decode batch.npy --bits 16 -o images/"},
    {"Decode the result of smalti encode", "smalti decode photo.safetensors -o again.png"},
    {"Write the image to a pipe, with the VAE of another model",
     "smalti decode big.npy -m PixArt-Sigma-XL-2-512-MS --format ppm -o - | pnmtojpeg >big.jpg"},
    {"Show how an 8192x8192 image is decoded in 4 GB",
     "smalti decode latents-1024x1024.npy --memory-limit 4G --scratch /var/tmp --plan"},
    {NULL, NULL},
};

const struct smalti_command smalti_decode_command = {
    .name = "smalti decode",
    .summary = "decode latents to images",
    .operands = "LATENTS",
    .description = "Decodes latents [channels, height, width] or [images, channels, height, width] of a "
		   "safetensors or .npy file with the VAE's decoder. The result is exact at any size: "
		   "nothing is approximated by tiles. Rows are written as they are decoded, and the file "
		   "appears under its name when it is complete and stored safely on disk.\n\nSIGINT or "
		   "SIGTERM drop the image in progress; finished images remain.",
    .options = SMALTI_OPTION_TABLE(rows),
    .examples = examples,
    .defaults = &defaults,
    .size = sizeof(defaults),
    .run = smalti_decode_run,
};
