/* SPDX-License-Identifier: Apache-2.0 */
#include "share/spans.h"

/* Returns the index of the first range that ends behind `at`. */
static int64_t find(const struct smalti_spans *spans, int64_t at)
{
	int64_t low = 0, high = spans->count;
	while (low < high) {
		const int64_t middle = low + (high - low) / 2;
		if (spans->ranges[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct smalti_range smalti_spans_next(const struct smalti_spans *spans, int64_t at)
{
	const int64_t i = find(spans, at);
	return i < spans->count ? spans->ranges[i] : (struct smalti_range){INT64_MAX, INT64_MAX};
}

int smalti_spans_add(struct smalti_spans *spans, const struct smalti_range *range, struct smalti_error *error)
{
	if (smalti_grow(&spans->ranges, spans->count, sizeof(*spans->ranges), error) < 0)
		return -1;
	struct smalti_range *at = spans->ranges + find(spans, range->first),
			    *end = spans->ranges + spans->count;
	const bool before = at > spans->ranges && at[-1].end == range->first;
	const bool behind = at < end && at->first == range->end;
	if (before && behind) {
		at[-1].end = at->end;
		memmove(at, at + 1, (size_t)(end - at - 1) * sizeof(*at));
		spans->count--;
	} else if (before) {
		at[-1].end = range->end;
	} else if (behind) {
		at->first = range->first;
	} else {
		memmove(at + 1, at, (size_t)(end - at) * sizeof(*at));
		*at = *range;
		spans->count++;
	}
	return 0;
}

int64_t smalti_spans_items(const struct smalti_spans *spans)
{
	int64_t items = 0;
	for (int64_t i = 0; i < spans->count; i++)
		items += spans->ranges[i].end - spans->ranges[i].first;
	return items;
}

void smalti_spans_free(struct smalti_spans *spans)
{
	free(spans->ranges);
	*spans = (struct smalti_spans){0};
}

int smalti_spans_print(const struct smalti_spans *spans, cJSON *object, const char *key,
		       struct smalti_error *error)
{
	cJSON *list = cJSON_AddArrayToObject(object, key);
	bool ok = list;
	for (int64_t i = 0; i < 2 * spans->count && ok; i++) {
		const struct smalti_range *range = &spans->ranges[i / 2];
		ok = cJSON_AddItemToArray(list,
					  cJSON_CreateNumber((double)(i % 2 ? range->end : range->first)));
	}
	return ok ? 0 : smalti_fail(error, SMALTI_ENOMEM, "no memory for a list of ranges");
}

int smalti_spans_read(struct smalti_spans *spans, const cJSON *object, const char *key, int64_t items,
		      struct smalti_error *error)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, key), *item;
	int64_t last = -1, first = -1;
	*spans = (struct smalti_spans){0};
	if (!cJSON_IsArray(list))
		return smalti_fail(error, SMALTI_EFORMAT, "the key \"%s\" (an array) is missing", key);
	int status = 0;
	cJSON_ArrayForEach (item, list) {
		const double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
		if (!(value > (double)last && value <= (double)items && value == (double)(int64_t)value))
			break;
		last = (int64_t)value;
		if (first >= 0)
			status = smalti_spans_add(spans, &(struct smalti_range){first, last}, error);
		first = first < 0 ? last : -1;
		if (status)
			break;
	}
	if (status == 0 && (item || first >= 0))
		status = smalti_fail(error, SMALTI_EFORMAT,
				     "\"%s\" should be pairs of growing numbers up to %" PRId64, key, items);
	if (status)
		smalti_spans_free(spans);
	return status;
}
