/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "bench/schedule.h"

#include <math.h>

static int read_link(struct smalti_task_schedule *s, const cJSON *item, struct smalti_error *error)
{
	const double from = smalti_json_number(item, "from"), to = smalti_json_number(item, "to"),
		     rate = smalti_json_number(item, "gbs"), delay = smalti_json_number(item, "us");
	if (!(from >= 0 && from < s->places && to >= 0 && to < s->places && rate > 0 && delay >= 0))
		return smalti_fail(error, SMALTI_EFORMAT, "a link from %g to %g of %d places, at %g GB/s",
				   from, to, s->places, rate);
	s->links[(int)from * s->places + (int)to] = (struct smalti_schedule_link){1e9 * rate, 1e-6 * delay};
	return 0;
}

int smalti_schedule_read_tiles(struct smalti_task_schedule *s, struct smalti_error *error)
{
	const cJSON *tiles = cJSON_GetObjectItemCaseSensitive(s->trace, "tiles"), *item;
	s->tiles = smalti_calloc(cJSON_GetArraySize(tiles) + 1, sizeof(*s->tiles), error);
	s->made = smalti_calloc(cJSON_GetArraySize(tiles) + 1, sizeof(*s->made), error);
	s->links = smalti_calloc(s->places, s->places * (int64_t)sizeof(*s->links), error);
	if (!s->tiles || !s->made || !s->links)
		return -1;
	cJSON_ArrayForEach (item, tiles) {
		const double bytes = cJSON_GetNumberValue(item);
		if (!(bytes >= 0))
			return smalti_fail(error, SMALTI_EFORMAT, "tile %" PRId64 " has %g bytes",
					   s->tile_count, bytes);
		s->tiles[s->tile_count++] = bytes;
	}
	s->host = 1e9 * smalti_json_number(s->trace, "host_gbs");
	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(s->trace, "links"))
		if (read_link(s, item, error) < 0)
			return -1;
	return 0;
}

static int read_list(const struct smalti_task_schedule *s, const cJSON *list, int64_t **tiles, int64_t *count,
		     struct smalti_error *error)
{
	const cJSON *item;
	*tiles = smalti_calloc(cJSON_GetArraySize(list) + 1, sizeof(**tiles), error);
	if (!*tiles)
		return -1;
	cJSON_ArrayForEach (item, list) {
		const double tile = cJSON_GetNumberValue(item);
		if (!(tile >= 0 && tile < (double)s->tile_count))
			return smalti_fail(error, SMALTI_EFORMAT, "tile %g of %" PRId64, tile, s->tile_count);
		(*tiles)[(*count)++] = (int64_t)tile;
	}
	return 0;
}

int smalti_schedule_read_uses(const struct smalti_task_schedule *s, struct smalti_schedule_task *task,
			      const cJSON *arguments, struct smalti_error *error)
{
	const cJSON *reads = cJSON_GetObjectItemCaseSensitive(arguments, "reads"),
		    *writes = cJSON_GetObjectItemCaseSensitive(arguments, "writes");
	if (read_list(s, reads, &task->reads, &task->read_count, error) < 0)
		return -1;
	return read_list(s, writes, &task->writes, &task->write_count, error);
}

int smalti_schedule_find_weights(struct smalti_task_schedule *s, struct smalti_error *error)
{
	SCOPED(free) int64_t *readers = smalti_calloc(s->tile_count + 1, sizeof(*readers), error);
	s->weights = smalti_calloc(s->count, sizeof(*s->weights), error);
	if (!readers || !s->weights)
		return -1;
	for (int64_t i = 0; i < s->count; i++) {
		for (int64_t j = 0; j < s->tasks[i].read_count; j++)
			readers[s->tasks[i].reads[j]]++;
		for (int64_t j = 0; j < s->tasks[i].write_count; j++)
			s->made[s->tasks[i].writes[j]] = true;
	}
	for (int64_t i = 0; i < s->count; i++)
		for (int64_t j = 0; j < s->tasks[i].read_count; j++) {
			const int64_t tile = s->tasks[i].reads[j];
			if (!s->made[tile])
				s->weights[i] += s->tiles[tile] / (double)readers[tile];
		}
	return 0;
}

double smalti_schedule_weights_rate(const struct smalti_task_schedule *s, int place)
{
	double sum = 0, fastest = 0;
	for (int other = 0; other < s->places; other++) {
		const double rate = place ? s->links[other * s->places + place].rate : s->links[other].rate;
		sum += rate;
		fastest = fmax(fastest, rate);
	}
	if (place == 0)
		return s->host > 0 ? fmin(s->host, sum) : sum;
	/* through main memory all links of a place are one; links between devices are others */
	return fastest > s->links[place].rate ? sum : s->links[place].rate;
}
