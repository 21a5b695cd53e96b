/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/common_rows.h"
#include "cli/extract.h"
#include "cli/predict.h"
#include "extract/window.h"

#define TYPE struct smalti_extract_settings

static const char *const image_sizes[] = {"128", "256", "512", "1024", "2048", "2880", NULL};
static const char *const orientations[] = {"exif", "stored", NULL};
static const char *const dtypes[] = {"f32", "f16", "bf16", NULL};
static const char *const shard_items[] = {"auto", NULL}; /* SMALTI_SHARD_ITEMS_AUTO */
static const char *const compressions[] = {"auto", "never", "always", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Data set")},
    {SMALTI_STRING(TYPE, extract.image_root), "image-dir", 0, "DIR",
     "directory that the paths in the list are relative to; default: the list's directory, or InternImgs "
     "beside InternData",
     .alias = "images"},
    {SMALTI_LIST(TYPE, caption_keys), "caption-key", 'k', "KEY",
     "key of an item's caption; repeat it, or separate keys by commas, for several captions; default: the "
     "first of txt, prompt, caption and text that the data set has"},
    {SMALTI_STRING(TYPE, range), "range", 'r', "START:END",
     "process only items START to END-1 of the list, counted from 0"},
    {SMALTI_INT64(TYPE, extract.first), "start-index", 0, "N", "START of --range, as in PixArt's tool",
     .alias = "start_index", .minimum = 0, .maximum = INT64_MAX},
    {SMALTI_INT64(TYPE, extract.end), "end-index", 0, "N",
     "END of --range, as in PixArt's tool; 0: the end of the list", .alias = "end_index", .minimum = 0,
     .maximum = INT64_MAX},
    {SMALTI_STRING(TYPE, shard), "shard", 0, "I/N",
     "process only part I of N equal parts of the range, counted from 0, for job arrays"},

    {SMALTI_GROUP("Features")},
    {SMALTI_FLAG(TYPE, t5), "t5", 0, NULL, "extract T5 features of captions; default: these and the VAE's"},
    {SMALTI_FLAG(TYPE, vae), "vae", 0, NULL, "extract VAE features of images; default: these and T5's"},
    {SMALTI_CHOICE(TYPE, image_size), "img-size", 's', "N",
     "resolution of the aspect-ratio bins; each image is resized to the bin nearest to its aspect ratio",
     .choices = image_sizes},
    {SMALTI_CHOICE(TYPE, extract.fit), "fit", 0, "HOW",
     "how an image is resized to its bin: cover scales it until it covers the bin, then crops it; stretch "
     "changes its aspect ratio, as PixArt's tool does",
     .choices = smalti_fittings},
    {SMALTI_CHOICE(TYPE, orientation), "orientation", 0, "HOW",
     "exif applies the EXIF orientation of images, stored ignores it, as PixArt's tool does",
     .choices = orientations},
    SMALTI_CLEANING_ROW(TYPE, extract.cleaning, "captions"),
    {SMALTI_INT64(TYPE, extract.max_tokens), "max-tokens", 0, "N",
     "truncate captions to N tokens; 0: the pipeline's maximum", .minimum = 0, .maximum = 1 << 16},
    {SMALTI_CHOICE(TYPE, extract.type), "dtype", 0, "TYPE", "data type of the features", .choices = dtypes},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, extract.output), "output", 'o', "DIR",
     "output directory; an existing one is resumed"},
    {SMALTI_BYTES(TYPE, extract.shard_bytes), "shard-bytes", 0, "SIZE",
     "approximate size of a shard, instead of --shard-items", .minimum = 1, .maximum = INT64_MAX},
    {SMALTI_INT64(TYPE, extract.shard_items), "shard-items", 0, "N",
     "items per shard; 0: 1024; auto: as many as make 1 GiB or less and keep several processes at work, "
     "decided when DIR is created",
     .minimum = 0, .maximum = 1 << 30, .choices = shard_items},
    {SMALTI_CHOICE(TYPE, extract.compression), "compress", 0, "WHEN",
     "whether to compress shards; auto: if that saves a fifth of their size", .choices = compressions},
    {SMALTI_FLAG(TYPE, extract.retry_failed), "retry-failed", 0, NULL, "retry items that failed before"},
    {SMALTI_FLAG(TYPE, extract.append), "append", 0, NULL,
     "add the items that were appended to the list since DIR was created"},
    {SMALTI_FLAG(TYPE, extract.allow_mixed_isa), "allow-mixed-isa", 0, NULL,
     "continue although the instruction set, which decides the rounding, is not the one DIR was created "
     "with"},
    {SMALTI_INT64(TYPE, extract.lease_seconds), "lease", 0, "SECONDS",
     "seconds without activity after which the work of a process on another machine is taken over",
     .minimum = 2, .maximum = 86400},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL, "print the result as a JSON object on standard output"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},

    {SMALTI_GROUP("Model")},
    {SMALTI_STRING(TYPE, extract.model.directory), "model", 'm', "DIR",
     "directory of a pipeline in diffusers' layout; its transformer is not needed; default: the embedded "
     "model"},
    SMALTI_TEXT_ENCODER_ROWS(TYPE, extract.model),
    {SMALTI_LIST(TYPE, lora), "lora", 0, "PATH[:WEIGHT]",
     "change the text encoder by the LoRA adapter in PATH, a safetensors file or a directory of peft or "
     "diffusers, times WEIGHT (default 1)"},
    {SMALTI_STRING(TYPE, extract.model.vae), "vae-model", 0, "DIR", "load the VAE from DIR"},
    SMALTI_VARIANT_ROW(TYPE, extract.model.variant),
    SMALTI_PRECISION_ROW(TYPE, extract.model.precision),

    {SMALTI_GROUP("Machine")},
    SMALTI_SESSION_ROWS(TYPE),
    {SMALTI_BYTES(TYPE, extract.read_limit), "read-limit", 0, "RATE",
     "read at most RATE bytes of images per second, such as 50M, from storage that others share",
     .minimum = 1, .maximum = INT64_MAX},
    {SMALTI_BYTES(TYPE, extract.write_limit), "write-limit", 0, "RATE",
     "write at most RATE bytes of shards per second", .minimum = 1, .maximum = INT64_MAX},
    SMALTI_TRACE_ROW(TYPE),
    SMALTI_PREDICT_ROW(TYPE),
};

static const struct smalti_extract_settings defaults = {
    .extract = {.cleaning = SMALTI_CLEANING_STRIP, .type = SMALTI_FEATURES_F16, .lease_seconds = 300},
    .image_size = 2,
    .session = SMALTI_SESSION_DEFAULTS,
};

static const struct smalti_example examples[] = {
    {"Extract captions and images of a PixArt data set",
     "smalti extract InternData/data_info.json -o features --img-size 512"},
    {"Extract only the captions of a list, with the full T5",
     "smalti extract captions.jsonl --t5 -k caption -m PixArt-Sigma-XL-2-512-MS -o features"},
    {"Process images exactly as PixArt's tool does",
     "smalti extract data_info.json --vae --fit stretch --orientation stored --dtype f32 -o features"},
    {"Use a directory of images with captions, or of tar files written by img2dataset",
     "smalti extract photos/ -o features"},
    {"Use some tar files of a webdataset", "smalti extract 'laion/{00000..00099}.tar' -o features"},
    {"Read a list from another program",
     "python3 python/parquet_to_jsonl.py data.parquet | smalti extract - -o features"},
    {"Run one of 16 jobs on the same data and directory",
     "smalti extract data.jsonl --shard 3/16 -o /shared/features"},
    {"Retry failed items", "smalti extract data.jsonl -o features --retry-failed"},
    {NULL, NULL},
};

const struct smalti_command smalti_extract_command = {
    .name = "smalti extract",
    .summary = "extract features of captions and images for training",
    .operands = "DATASET...",
    .description =
	"Computes the features of a data set: T5 hidden states of captions, and VAE means and standard "
	"deviations of images. They are written to shards, HDF5 files of about a thousand items each, "
	"without padding and with a checksum per item.\n\nDATASET is a list (PixArt's data_info.json, JSON "
	"Lines, CSV or TSV with a header; \"path\" is the image), a directory of images with captions beside "
	"them (NAME.txt or NAME.json), or a webdataset: a tar file, several ({00000..00009}.tar also works), "
	"or a directory of them. Lists and tar files may be compressed by gzip: they are decompressed to a "
	"temporary file in $TMPDIR. \"-\" reads a list or tar file from standard input.\n\nThe same command "
	"continues an interrupted run: no item is processed twice and none is lost. Several processes may "
	"run it at the same time, on any machines that share DIR. Items that fail are listed in "
	"DIR/failed.jsonl with the reason, and the exit status is 3.\n\nAfter SIGINT or SIGTERM the work in "
	"progress is completed and kept, if that takes no more than two minutes; then, or after a second "
	"signal, only "
	"completed work is kept.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = smalti_extract_run,
};
