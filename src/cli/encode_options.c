/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/encode.h"

#define TYPE struct smalti_encode_options

static const char *const formats[] = {"safetensors", "npy", NULL};

const char *const smalti_latents_suffixes[] = {".safetensors", ".npy", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Latents")},
    {SMALTI_FLAG(TYPE, sample), "sample", 0, NULL,
     "also draw latents, mean + std x noise, scaled for the diffusion model"},
    {SMALTI_SEED(TYPE, seed), "seed", 0, "N",
     "seed of the noise, drawn as torch does, from -2^63 to 2^64-1; default 0", SMALTI_GIVEN(TYPE, has_seed)},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, output), "output", 'o', "FILE", "file for the latents, or - for standard output"},
    {SMALTI_CHOICE(TYPE, format), "format", 0, "TYPE",
     "file format; default: by the file name's suffix, .safetensors or .npy", .choices = formats,
     SMALTI_GIVEN(TYPE, has_format)},
    SMALTI_VAE_REPORT_ROWS,

    SMALTI_VAE_ROWS,
};

static const struct smalti_encode_options defaults = {.vae = SMALTI_VAE_DEFAULTS};

static const struct smalti_example examples[] = {
    {"Encode a photograph", "smalti encode photo.jpg -o photo.safetensors"},
    {"Encode several images of the same size into one file",
     "smalti encode frames/*.png -o frames.safetensors"},
    {"Draw latents for a diffusion model", "smalti encode photo.jpg --sample --seed 3 -o photo.npy"},
    {NULL, NULL},
};

const struct smalti_command smalti_encode_command = {
    .name = "smalti encode",
    .summary = "encode images to latents",
    .operands = "IMAGE...",
    .description =
	"Encodes images with the VAE's encoder to the mean and standard deviation of their latents. The "
	"result is exact at any size. Images are JPEG, PNG or WebP files; their EXIF orientation is applied, "
	"transparency is dropped, and sides that are not a multiple of the VAE's factor (8) are cropped "
	"equally at both ends.\n\nA safetensors file contains the tensors \"mean\" and \"std\" [channels, "
	"height, width], unscaled as in features, and \"latents\" with --sample; for several images, which "
	"must have the same size, [images, channels, height, width]. An .npy file contains one array: the "
	"means, or the latents with --sample.",
    .options = SMALTI_OPTION_TABLE(rows),
    .examples = examples,
    .defaults = &defaults,
    .size = sizeof(defaults),
    .run = smalti_encode_run,
};
