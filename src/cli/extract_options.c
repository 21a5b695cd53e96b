/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/common_rows.h"
#include "cli/extract.h"
#include "extract/identity.h"
#include "io/caption.h"
#include "smalti/extract.h"

#define TYPE struct smalti_extract_settings

static const char *const image_sizes[] = {"256", "512", "1024", "2048", "2880", NULL};
static const char *const orientations[] = {"exif", "stored", NULL};
static const char *const dtypes[] = {"f32", "f16", "bf16", NULL};
static const char *const compressions[] = {"auto", "never", "always", NULL};

const int64_t smalti_extract_image_sizes[] = {256, 512, 1024, 2048, 2880};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Data set")},
    {SMALTI_STRING(TYPE, image_root), "image-folder", 0, "DIR",
     "what the list's paths are relative to; default the list's directory, or the InternImgs beside an "
     "InternData",
     .alias = "images"},
    {SMALTI_LIST(TYPE, caption_keys), "caption-key", 'k', "KEY",
     "where an item's caption is; repeat it, or separate keys by commas, for several; default the first of "
     "txt, prompt, caption and text that the data set has"},
    {SMALTI_STRING(TYPE, range), "range", 'r', "START:END",
     "these items of the list only, counted from 0, without END"},
    {SMALTI_STRING(TYPE, shard), "shard", 0, "I/N",
     "part I, from 0, of N even parts of that: for job arrays"},

    {SMALTI_GROUP("Features")},
    {SMALTI_FLAG(TYPE, t5), "t5", 0, NULL, "of the captions; default both"},
    {SMALTI_FLAG(TYPE, vae), "vae", 0, NULL, "of the images; default both"},
    {SMALTI_CHOICE(TYPE, image_size), "img-size", 's', "N",
     "images take the shape of this resolution's bin that is nearest to their own", .choices = image_sizes},
    {SMALTI_CHOICE(TYPE, fit), "fit", 0, "HOW",
     "how: in proportion until they cover it, then cropped, or squeezed into it as PixArt's tool does",
     .choices = smalti_fittings},
    {SMALTI_CHOICE(TYPE, orientation), "orientation", 0, "HOW",
     "images upright as EXIF says, or as they are stored, as PixArt's tool takes them",
     .choices = orientations},
    {SMALTI_CHOICE(TYPE, cleaning), "clean", 0, "HOW",
     "how captions are cleaned: as they stand, lower-cased and stripped, freed of links, markup and the like "
     "too, or stripped alone",
     .choices = smalti_cleanings},
    {SMALTI_INT64(TYPE, max_tokens), "max-tokens", 0, "N",
     "tokens that a caption is cut to; 0: as many as the pipeline takes", .minimum = 0, .maximum = 1 << 16},
    {SMALTI_CHOICE(TYPE, dtype), "dtype", 0, "TYPE", "what values are kept as", .choices = dtypes},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, output), "output", 'o', "DIR",
     "directory for the shards; one that is there is gone on with"},
    {SMALTI_BYTES(TYPE, shard_bytes), "shard-bytes", 0, "SIZE",
     "about this much to a shard, instead of --shard-items", .minimum = 1, .maximum = INT64_MAX},
    {SMALTI_INT64(TYPE, shard_items), "shard-items", 0, "N", "items in a shard; 0: 1024", .minimum = 0,
     .maximum = 1 << 30},
    {SMALTI_CHOICE(TYPE, compress), "compress", 0, "WHEN",
     "whether shards are compressed; auto measures whether that saves a fifth", .choices = compressions},
    {SMALTI_FLAG(TYPE, retry_failed), "retry-failed", 0, NULL, "try the items again that failed before"},
    {SMALTI_FLAG(TYPE, append), "append", 0, NULL,
     "the list has grown at its end since DIR was begun: add the new items"},
    {SMALTI_FLAG(TYPE, allow_mixed_isa), "allow-mixed-isa", 0, NULL,
     "go on with another instruction set than DIR was begun with, although it rounds otherwise"},
    {SMALTI_INT64(TYPE, lease), "lease", 0, "SECONDS",
     "after which others take over from a process on another machine that gives no sign of life",
     .minimum = 2, .maximum = 86400},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL, "report the result as a line of JSON on standard output"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "report errors only"},

    {SMALTI_GROUP("Model")},
    {SMALTI_STRING(TYPE, model), "model", 'm', "DIR",
     "pipeline directory in diffusers' layout, whose transformer is not needed; default the embedded model"},
    {SMALTI_STRING(TYPE, tokenizer), "tokenizer", 0, "DIR",
     "directory of a tokenizer, instead of the pipeline's"},
    {SMALTI_STRING(TYPE, text_encoder), "text-encoder", 0, "DIR", "directory of a T5 encoder, instead"},
    {SMALTI_STRING(TYPE, vae_model), "vae-model", 0, "DIR", "directory of a VAE, instead of the pipeline's"},
    SMALTI_VARIANT_ROW(TYPE),
    SMALTI_PRECISION_ROW(TYPE),

    {SMALTI_GROUP("Machine")},
    SMALTI_POLICY_ROW(TYPE),
    SMALTI_CPUS_ROW(TYPE),
    SMALTI_MEMORY_ROW(TYPE),
    SMALTI_TRACE_ROW(TYPE),
};

static const struct smalti_extract_settings defaults = {.cleaning = SMALTI_CLEANING_STRIP,
							.image_size = 1,
							.dtype = SMALTI_FEATURES_F16,
							.lease = 300,
							.session = {.policy = "lws"}};

static const struct smalti_example examples[] = {
    {"Captions and images of a PixArt data set",
     "smalti extract InternData/data_info.json -o features --img-size 512"},
    {"The captions of a list alone, by the full T5",
     "smalti extract captions.jsonl --t5 -k caption -m PixArt-Sigma-XL-2-512-MS -o features"},
    {"Images exactly as PixArt's tool takes them",
     "smalti extract data_info.json --vae --fit squeeze --orientation stored --dtype f32 -o features"},
    {"A directory of images with captions beside them, or of tars as img2dataset makes them",
     "smalti extract photos/ -o features"},
    {"Some tars of a webdataset", "smalti extract 'laion/{00000..00099}.tar' -o features"},
    {"A list that another program writes",
     "python3 python/parquet_to_jsonl.py data.parquet | smalti extract - -o features"},
    {"One of 16 jobs on the same data and the same directory",
     "smalti extract data.jsonl --shard 3/16 -o /shared/features"},
    {"What failed, once more", "smalti extract data.jsonl -o features --retry-failed"},
    {NULL, NULL},
};

const struct smalti_command smalti_extract_command = {
    .name = "extract",
    .summary = "make the features of captions and images, for training",
    .operands = "DATASET...",
    .description =
	"Computes T5's hidden states of captions and the VAE's means and standard deviations of "
	"images, into shards: HDF5 files of some thousand items each, without padding, with a checksum "
	"for every item.\n\n"
	"DATASET is a list (PixArt's data_info.json, JSON Lines, CSV or TSV with a header; the image "
	"is under \"path\"), a directory of images with captions beside them (NAME.txt or NAME.json), or "
	"a webdataset: a tar, several of them ({00000..00009}.tar, too), or a directory of them. \"-\" is a "
	"list or tar on the standard input.\n\n"
	"A run that was stopped, killed or cut off goes on where it was when the same command is given "
	"again: no item is done twice, none is lost. Several processes may do so at the same time, on "
	"any machines that share the directory. Items that cannot be done are listed in DIR/failed.jsonl "
	"with the reason, and the exit status is 3.\n\n"
	"SIGINT or SIGTERM complete what is under way and keep it; a second one keeps what is complete.",
    .options = SMALTI_OPTION_TABLE(rows),
    .examples = examples,
    .defaults = &defaults,
    .size = sizeof(defaults),
    .run = smalti_extract_run,
};
