/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/shard_items.h"
#include "extract/window.h"
#include "rt/session.h"
#include "shard/layout.h"
#include "store/directory.h"

enum { ITEMS = 1024, ITEMS_MAX = 1 << 20, PROCESSES = 64 };
static const double SHARD_BYTES = 1 << 30;
static const char KEY[] = "shard_items"; /* in the identity */

/* Returns the quotient as a number of items. */
static int64_t items_of(double all, double each)
{
	const double items = all / (each > 1 ? each : 1);
	return items < 1 ? 1 : items > ITEMS_MAX ? ITEMS_MAX : (int64_t)items;
}

int64_t smalti_shard_items_auto(const struct smalti_shard_facts *facts)
{
	const int64_t pack = items_of(facts->together, 1);
	int64_t max = smalti_min(items_of(SHARD_BYTES, facts->bytes),
				 items_of((double)facts->may_memory, facts->memory));
	max = smalti_min(max, items_of((double)facts->items, PROCESSES));
	return smalti_max(max / pack, 1) * pack;
}

/* Sums up the items of a window without images. */
static void sum_up(const struct smalti_extract_parts *parts, const struct smalti_window *window,
		   int64_t images, struct smalti_shard_facts *facts)
{
	const struct smalti_shard_schema *schema = &parts->schema;
	const double count = (double)window->count;
	double tokens = 0, memory = 0;
	for (int64_t i = 0; i < window->count; i++) {
		const struct smalti_features_row *row = &window->items[i].row;
		for (int k = 0; k < SMALTI_FEATURES_CAPTIONS_MAX; k++)
			tokens += (double)row->texts[k].tokens;
		memory += (double)smalti_shard_row_memory(schema, row);
	}
	const double values = tokens * (double)(schema->text_width * smalti_dtype_bytes(schema->dtype));
	*facts = (struct smalti_shard_facts){
	    .bytes = values / count + (double)smalti_window_latent_bytes(parts),
	    .memory = memory / count,
	    .together = tokens > 0 ? (double)parts->pack_tokens * count / tokens : (double)images,
	};
}

/* Reads the first items of a range that is not empty. */
static int look(const struct smalti_extract_parts *parts, const struct smalti_range *range, int64_t images,
		struct smalti_shard_facts *facts, struct smalti_error *error)
{
	if (smalti_dataset_seek(parts->dataset, range->first, error) < 0)
		return -1;
	struct smalti_window *window =
	    smalti_window_read(parts, NULL, range, false, range->first, NULL, error);
	if (window)
		sum_up(parts, window, images, facts);
	smalti_window_free(window);
	return window ? 0 : -1;
}

/* Adds the value of `auto` to the identity. */
static int propose(struct smalti_extract_parts *parts, int64_t images, struct smalti_error *error)
{
	enum { PART = 16 }; /* of the memory */
	const struct smalti_range list = {0, smalti_dataset_info(parts->dataset)->count};
	struct smalti_shard_facts facts;
	if (list.end > 0 && look(parts, &list, images, &facts, error) < 0)
		return -1;
	facts.items = list.end;
	facts.may_memory = parts->session->memory / PART;
	const int64_t items = list.end > 0 ? smalti_shard_items_auto(&facts) : ITEMS;
	return cJSON_AddNumberToObject(parts->identity, KEY, (double)items)
		   ? 0
		   : smalti_fail(error, SMALTI_ENOMEM, "no memory for the number of items of a shard");
}

int64_t smalti_shard_items(struct smalti_extract_parts *parts, const struct smalti_range *within,
			   int64_t images, struct smalti_error *error)
{
	const struct smalti_extract_options *o = &parts->options;
	struct smalti_shard_facts facts;
	if (o->shard_items == SMALTI_SHARD_ITEMS_AUTO) {
		const int there = smalti_directory_look(o->output, error);
		return there < 0 || (there == 0 && propose(parts, images, error) < 0) ? -1 : 0;
	}
	if (o->shard_items || !o->shard_bytes || within->first == within->end)
		return o->shard_items ? o->shard_items : ITEMS;
	return look(parts, within, images, &facts, error) < 0 ? -1
							      : items_of((double)o->shard_bytes, facts.bytes);
}

int64_t smalti_shard_items_recorded(const char *directory, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *identity = smalti_directory_identity(directory, error);
	int64_t items = ITEMS;
	if (!identity)
		return -1;
	if (smalti_json_int(identity, KEY, SMALTI_JSON_OPTIONAL, 1, SMALTI_SHARD_ITEMS_MAX, &items, error) ==
	    0)
		return items;
	smalti_error_prefix(error, "%s/extract.json", directory);
	return -1;
}
