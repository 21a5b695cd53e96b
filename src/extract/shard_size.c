/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/shard_size.h"

enum { ITEMS_DEFAULT = 1024, ITEMS_MAX = 1 << 20 };

static int64_t count_tokens(const struct smalti_window *window)
{
	int64_t tokens = 0;
	for (int64_t i = 0; i < window->count; i++)
		for (int k = 0; k < SMALTI_FEATURES_CAPTIONS_MAX; k++)
			tokens += window->items[i].texts[k].tokens;
	return tokens;
}

/* Images count as squares: that is about the area of every bin. */
static double item_bytes(const struct smalti_extract_parts *parts, const struct smalti_window *window)
{
	const struct smalti_shard_schema *schema = &parts->schema;
	double values = (double)(count_tokens(window) * schema->text_width) / (double)window->count;
	if (parts->vae) {
		const int64_t side = schema->image_size / smalti_vae_factor(&parts->vae->config);
		values += (double)(2 * schema->latent_channels * side * side);
	}
	return values * (double)smalti_dtype_bytes(schema->dtype);
}

int64_t smalti_shard_items(const struct smalti_extract_parts *parts, const struct smalti_range *within,
			   struct smalti_error *error)
{
	const struct smalti_extract_options *o = &parts->options;
	if (o->shard_items || !o->shard_bytes || within->first == within->end)
		return o->shard_items ? o->shard_items : ITEMS_DEFAULT;
	if (smalti_dataset_seek(parts->dataset, within->first, error) < 0)
		return -1;
	struct smalti_window *window =
	    smalti_window_read(parts, NULL, within, false, within->first, NULL, error);
	if (!window)
		return -1;
	const double bytes = item_bytes(parts, window);
	smalti_window_free(window);
	const double items = (double)o->shard_bytes / (bytes > 1 ? bytes : 1);
	return items < 1 ? 1 : items > ITEMS_MAX ? ITEMS_MAX : (int64_t)items;
}
