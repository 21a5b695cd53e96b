/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export.h"

#define TYPE struct smalti_export_settings

static const char *const formats[] = {"pixart", "safetensors", "webdataset", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Export")},
    {SMALTI_CHOICE(TYPE, format), "format", 'f', "FORMAT", "what to write", .choices = formats,
     SMALTI_GIVEN(TYPE, has_format)},
    {SMALTI_STRING(TYPE, output), "output", 'o', "FOLDER", "where to; made if need be"},
    {SMALTI_BYTES(TYPE, shard_bytes), "shard-bytes", 0, "SIZE",
     "of safetensors and webdataset: begin another file after so much; default 1G", .minimum = 1,
     .maximum = INT64_C(1) << 40, SMALTI_GIVEN(TYPE, has_shard_bytes)},
    {SMALTI_FLAG(TYPE, restart), "restart", 0, NULL,
     "begin anew, whatever an earlier run has left; files of the same names are replaced"},

    {SMALTI_GROUP("Reporting")},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL,
     "report items that failed, and a summary, as lines of JSON on standard output"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "report errors only"},
};

static const struct smalti_export_settings defaults = {.format = 0};

static const struct smalti_example examples[] = {
    {"For PixArt's training, beside the images in InternImgs",
     "smalti export features --format pixart -o dataset/InternData"},
    {"Files of about 512 MiB for webdataset",
     "smalti export features -f webdataset --shard-bytes 512M -o tars"},
    {NULL, NULL},
};

const struct smalti_command smalti_export_command = {
    .name = "export",
    .summary = "write features into files that others read",
    .operands = "DIR",
    .description =
	"Writes what is in a directory of features (smalti extract) into files that other programs read. "
	"Every row is checked against its checksum on the way; a damaged one is named and left out.\n\n"
	"pixart: what PixArt-Sigma's multi-scale training reads unchanged with this directory as its root: "
	"caption_features_new/NAME.npz (\"caption_feature\" float16 [1, tokens, width] and "
	"\"attention_mask\" int16 [1, tokens]; padding is zeros) of the captions called \"prompt\", "
	"sharegpt4v_caption_features_new/NAME.npz and so on of others, and "
	"img_sdxl_vae_features_SIZEresolution_ms_new/NAME.npy (float32 [2 x channels, height, width]). "
	"NAME is what the loader makes of an item's path: the last '/' becomes '_'. Two items of one "
	"name are refused before anything is written.\n\n"
	"safetensors: features-000000.safetensors and so on with tensors \"t5/CAPTION/KEY\" [tokens, "
	"width] and \"vae/KEY\" in the features' own type; features-000000.jsonl has each item's token "
	"ids and original size.\n\n"
	"webdataset: features-000000.tar and so on with members INDEX.json (with the item's key), "
	"INDEX.t5.npy (of a second caption INDEX.t5-2.npy) and INDEX.vae.npy.\n\n"
	"Each file appears when it is complete. An export that was stopped, by a signal, a full disk or "
	"a crash, goes on when the same command is given again, from what was on the disk for certain; "
	"one that is complete is left as it is. How far it is stands in .smalti-export.json.",
    .options = SMALTI_OPTION_TABLE(rows),
    .examples = examples,
    .defaults = &defaults,
    .size = sizeof(defaults),
    .run = smalti_export_run,
};
