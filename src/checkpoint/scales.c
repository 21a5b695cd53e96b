/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/scales.h"

#include <math.h>

enum { NAME_LENGTH = 256 };

static const char marker[] = "scaled_fp8"; /* an empty tensor in files with scaled fp8 */

static const struct kind {
	const char *suffix;
	float divisor;
} kinds[] = {{"scale_weight", 1}, {"weight_scale", 1}, {"SCB", 127}};

/* Tensors that are beside a weight, too: the layout of LLM.int8, and scales of activations. */
static const char layout_suffix[] = "weight_format";
static const char *const input_suffixes[] = {"scale_input", "input_scale"};

/* Returns the tensor beside the weight X.weight: X.SUFFIX. */
static struct smalti_checkpoint_entry *beside(const struct smalti_checkpoint *checkpoint, const char *weight,
					      const char *suffix)
{
	char name[NAME_LENGTH];
	const char *dot = strrchr(weight, '.');
	if (!dot || strcmp(dot, ".weight") != 0)
		return NULL;
	const int length = snprintf(name, sizeof(name), "%.*s.%s", (int)(dot - weight), weight, suffix);
	return length < NAME_LENGTH ? smalti_checkpoint_entry(checkpoint, name) : NULL;
}

static struct smalti_checkpoint_entry *find_scale(const struct smalti_checkpoint *checkpoint,
						  const char *weight, const struct kind **kind)
{
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		struct smalti_checkpoint_entry *entry = beside(checkpoint, weight, kinds[i].suffix);
		*kind = &kinds[i];
		if (entry)
			return entry;
	}
	return NULL;
}

/* Checks that the scale is f32, one number or one for each row, all of them finite. */
static int check_scale(const struct smalti_checkpoint_entry *weight,
		       const struct smalti_checkpoint_entry *scale, struct smalti_error *error)
{
	const int64_t count = smalti_tensor_elements(&scale->view);
	const int64_t rows = weight->view.rank ? weight->view.shape[0] : 1;
	if (!scale->view.usable || scale->view.dtype != SMALTI_F32)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: tensor %s, the scale of %s, should be F32, found %s", scale->path,
				   scale->view.name, weight->view.name, scale->view.stored);
	if (count != 1 && count != rows)
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "%s: tensor %s should have one scale, or %lld for the rows of %s, found %lld",
		    scale->path, scale->view.name, (long long)rows, weight->view.name, (long long)count);
	const struct smalti_tensor_scale all = {scale->view.data, true, 1};
	for (int64_t i = 0; i < count; i++)
		if (!isfinite(smalti_tensor_scale(&all, i)))
			return smalti_fail(error, SMALTI_ECORRUPT, "%s: tensor %s: scale %lld is not finite",
					   scale->path, scale->view.name, (long long)i);
	return 0;
}

/* Checks that LLM.int8's integers lie in rows: other layouts are for one kind of GPU each. */
static int check_layout(const struct smalti_checkpoint *checkpoint, const char *weight,
			struct smalti_error *error)
{
	struct smalti_checkpoint_entry *layout = beside(checkpoint, weight, layout_suffix);
	if (!layout)
		return 0;
	layout->beside = true;
	if (layout->view.bytes == 1 && *(const unsigned char *)layout->view.data == 0)
		return 0;
	return smalti_fail(
	    error, SMALTI_EUNSUPPORTED,
	    "%s: tensor %s: only the layout 0, rows, is read: save the model again with a newer "
	    "bitsandbytes",
	    layout->path, layout->view.name);
}

static int attach(const struct smalti_checkpoint *checkpoint, struct smalti_checkpoint_entry *weight,
		  struct smalti_checkpoint_entry *scale, float divisor, struct smalti_error *error)
{
	const char *name = weight->view.name;
	if (check_scale(weight, scale, error) || check_layout(checkpoint, name, error))
		return -1;
	scale->beside = true;
	for (size_t i = 0; i < COUNT_OF(input_suffixes); i++) {
		struct smalti_checkpoint_entry *input = beside(checkpoint, name, input_suffixes[i]);
		if (input)
			input->beside = true;
	}
	weight->view.scale =
	    (struct smalti_tensor_scale){scale->view.data, smalti_tensor_elements(&scale->view) > 1, divisor};
	return 0;
}

int smalti_scales_attach(struct smalti_checkpoint *checkpoint, struct smalti_error *error)
{
	struct smalti_checkpoint_entry *marked = smalti_checkpoint_entry(checkpoint, marker);
	bool scaled = marked;
	if (marked)
		marked->beside = true;
	for (int64_t i = 0; i < checkpoint->count; i++) {
		struct smalti_checkpoint_entry *entry = &checkpoint->entries[i], *scale;
		const struct kind *kind;
		if (!entry->view.coding)
			continue;
		scale = find_scale(checkpoint, entry->view.name, &kind);
		if (scale && attach(checkpoint, entry, scale, kind->divisor, error))
			return -1;
		scaled = scaled || (scale && !entry->view.coding->needs_scale);
	}
	for (int64_t i = 0; i < checkpoint->count; i++) {
		struct smalti_checkpoint_entry *entry = &checkpoint->entries[i];
		const struct smalti_tensor_view *view = &entry->view;
		entry->unscaled = view->coding && !entry->beside && !view->scale.data &&
				  (scaled || view->coding->needs_scale);
	}
	return 0;
}
