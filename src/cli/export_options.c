/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export.h"

#define TYPE struct smalti_export_settings

static const char *const formats[] = {"pixart", "safetensors", "webdataset", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Export")},
    {SMALTI_CHOICE(TYPE, export.format), "format", 'f', "FORMAT", "output format", .choices = formats,
     SMALTI_GIVEN(TYPE, has_format)},
    {SMALTI_STRING(TYPE, export.output), "output", 'o', "DIR", "output directory; created if necessary"},
    {SMALTI_BYTES(TYPE, export.shard_bytes), "shard-bytes", 0, "SIZE",
     "for safetensors and webdataset: start a new file after SIZE; default 1G", .minimum = 1,
     .maximum = INT64_C(1) << 40, SMALTI_GIVEN(TYPE, has_shard_bytes)},
    {SMALTI_FLAG(TYPE, export.restart), "restart", 0, NULL,
     "start again instead of resuming; files of the same names are replaced"},

    {SMALTI_GROUP("Output")},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL,
     "print failed items and a summary as JSON Lines on standard output"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},
};

static const struct smalti_export_settings defaults = {.json = false};

static const struct smalti_example examples[] = {
    {"Export for PixArt's training, beside the images in InternImgs",
     "smalti export features --format pixart -o dataset/InternData"},
    {"Write webdataset files of about 512 MiB",
     "smalti export features -f webdataset --shard-bytes 512M -o tars"},
    {NULL, NULL},
};

const struct smalti_command smalti_export_command = {
    .name = "smalti export",
    .summary = "export features to other formats",
    .operands = "DIR",
    .description =
	"Converts a directory of features, as written by smalti extract, to files that other programs read. "
	"The checksum of every row is verified; damaged rows are reported and skipped.\n\npixart: the files "
	"that PixArt-Sigma's multi-scale training reads with this directory as its root: "
	"caption_features_new/NAME.npz (\"caption_feature\" float16 [1, tokens, width] and "
	"\"attention_mask\" int16 [1, tokens]; padding is zeros) for captions with the key \"prompt\", "
	"sharegpt4v_caption_features_new/NAME.npz and so on for other keys, and "
	"img_sdxl_vae_features_SIZEresolution_ms_new/NAME.npy (float32 [2 x channels, height, width]). As in "
	"PixArt's loader, NAME is the item's path with the last '/' replaced by '_'. Items with equal names "
	"are refused before anything is written.\n\nsafetensors: features-000000.safetensors and so on, with "
	"tensors \"t5/CAPTION/KEY\" [tokens, width] and \"vae/KEY\" in the features' data type; "
	"features-000000.jsonl contains the token ids and original size of each item.\n\nwebdataset: "
	"features-000000.tar and so on, with members INDEX.json (which contains the item's key), "
	"INDEX.t5.npy (INDEX.t5-2.npy for a second caption) and INDEX.vae.npy.\n\nEach file appears when it "
	"is complete. The same command continues an interrupted export from what is stored safely on disk, "
	"and leaves a complete one unchanged. .smalti-export.json records the progress.",
    .options = SMALTI_OPTION_TABLE(rows),
    .examples = examples,
    .defaults = &defaults,
    .size = sizeof(defaults),
    .run = smalti_export_run,
};
