/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/shard_items.h"
#include "jobs/bins.h"
#include "jobs/precision.h"

enum { TOKENS_MAX = 1 << 16, INPUTS_MAX = 1 << 20 };

void smalti_extract_defaults(struct smalti_extract_options *options)
{
	*options = (struct smalti_extract_options){.cleaning = SMALTI_CLEANING_STRIP,
						   .image_size = 512,
						   .type = SMALTI_FEATURES_F16,
						   .shard_items = 0,
						   .lease_seconds = 300};
}

static int check_range(const struct smalti_extract_options *o, struct smalti_error *error)
{
	if (o->first < 0 || o->end < 0 || (o->end && o->end < o->first))
		return smalti_fail(error, SMALTI_EINVAL,
				   "range of items: expected 0 <= START <= END, found %" PRId64 ":%" PRId64,
				   o->first, o->end);
	if (o->parts < 0 || (o->parts && (o->part < 0 || o->part >= o->parts)))
		return smalti_fail(error, SMALTI_EINVAL,
				   "shard of the items: expected I/N with 0 <= I < N, found %" PRId64
				   "/%" PRId64,
				   o->part, o->parts);
	return 0;
}

static int check_captions(const struct smalti_extract_options *o, struct smalti_error *error)
{
	if (smalti_check_range(o->caption_count, 0, SMALTI_FEATURES_CAPTIONS_MAX,
			       "number of keys of captions", error) < 0)
		return -1;
	for (int i = 0; i < o->caption_count; i++) {
		if (smalti_check_text(o->captions[i], "key of captions", error) < 0)
			return -1;
		for (int j = 0; j < i; j++)
			if (strcmp(o->captions[i], o->captions[j]) == 0)
				return smalti_fail(error, SMALTI_EINVAL, "key of captions: %s is there twice",
						   o->captions[i]);
	}
	return 0;
}

static int check_numbers(const struct smalti_extract_options *o, struct smalti_error *error)
{
	const struct {
		const char *what;
		int64_t value, max;
	} numbers[] = {
	    {"cleaning of captions", o->cleaning, SMALTI_CLEANING_STRIP},
	    {"fit of images", o->fit, SMALTI_FITTING_STRETCH},
	    {"type of features", o->type, SMALTI_FEATURES_BF16},
	    {"compression", o->compression, SMALTI_COMPRESS_ALWAYS},
	    {"precision of the text encoder", o->model.text_encoder_precision, SMALTI_TEXT_ENCODER_W8A8},
	    {"tokens of a caption", o->max_tokens, TOKENS_MAX},
	    {"items of a shard", o->shard_items == SMALTI_SHARD_ITEMS_AUTO ? 0 : o->shard_items,
	     SMALTI_SHARD_ITEMS_MAX},
	    {"bytes of a shard", o->shard_bytes, INT64_MAX},
	    {"limit of reading", o->read_limit, INT64_MAX},
	    {"limit of writing", o->write_limit, INT64_MAX},
	};
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (smalti_check_range(numbers[i].value, 0, numbers[i].max, numbers[i].what, error) < 0)
			return -1;
	return smalti_precision_check(o->model.precision, SMALTI_PRECISION_TF32, error);
}

int smalti_extract_check(const struct smalti_extract_options *o, struct smalti_error *error)
{
	struct smalti_bin bins[SMALTI_BINS_MAX];
	if (smalti_check_given(o->inputs, "data set", error) < 0 ||
	    smalti_check_range(o->input_count, 1, INPUTS_MAX, "number of data sets", error) < 0 ||
	    smalti_check_text(o->output, "directory for the features", error) < 0)
		return -1;
	if (!o->text && !o->images)
		return smalti_fail(error, SMALTI_EINVAL,
				   "neither the captions' nor the images' features are asked for");
	if (o->images && smalti_bins_list(o->image_size, SMALTI_BINS_TRAINING, bins, error) < 0)
		return -1;
	if (check_captions(o, error) < 0 || check_numbers(o, error) < 0)
		return -1;
	return check_range(o, error);
}
