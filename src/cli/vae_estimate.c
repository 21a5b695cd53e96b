/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/vae_estimate.h"

#include <stdio.h>

static const double mega = 1 << 20, tera = 1e12;

static double map_bytes(const struct smalti_vae_map *map)
{
	return (double)map->height * (double)map->width * (double)map->channels * (double)sizeof(float);
}

static void print_time(double seconds)
{
	if (seconds < 120)
		printf("%.1f s\n", seconds);
	else if (seconds < 7200)
		printf("%.0f min\n", seconds / 60);
	else
		printf("%.1f h\n", seconds / 3600);
}

void smalti_vae_estimate_print(const struct smalti_vae_estimate *f, const char *doing)
{
	const struct smalti_vae_map *image = &f->maps[0], *end = &f->maps[f->count - 1];
	if (end->height > image->height)
		image = end;
	printf("%s %lldx%lld pixels in bands of %lld latent rows\n", doing, (long long)image->width,
	       (long long)image->height, (long long)f->tile_rows);
	printf("memory   %.0f MiB at most\n", (double)f->memory / mega);
	printf("scratch  %.0f MiB at most\n", (double)f->scratch / mega);
	printf("work     %.3g TFLOP, %.2f times that of computing everything once\n", f->flops / tera,
	       f->flops / f->min_flops);
	printf("time     about ");
	print_time(f->seconds);
	printf("\n%-44s %8s %8s %5s %9s  %-9s %5s %9s\n", "map made by", "height", "width", "chan.", "MiB",
	       "stored", "times", "TFLOP");
	for (int64_t i = 0; i < f->count; i++) {
		const struct smalti_vae_map *map = &f->maps[i];
		printf("%-44s %8lld %8lld %5lld %9.1f  %-9s %5lld %9.3g\n", map->layer,
		       (long long)map->height, (long long)map->width, (long long)map->channels,
		       map_bytes(map) / mega, map->storage, (long long)map->times,
		       map->flops * (double)map->times / tera);
	}
}

static void add_map(cJSON *maps, const struct smalti_vae_map *map)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "layer", map->layer);
	cJSON_AddNumberToObject(object, "height", (double)map->height);
	cJSON_AddNumberToObject(object, "width", (double)map->width);
	cJSON_AddNumberToObject(object, "channels", (double)map->channels);
	cJSON_AddStringToObject(object, "storage", map->storage);
	cJSON_AddNumberToObject(object, "times", (double)map->times);
	cJSON_AddNumberToObject(object, "flops", map->flops);
	cJSON_AddItemToArray(maps, object);
}

cJSON *smalti_vae_estimate_json(const struct smalti_vae_estimate *f, const char *file)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "file", file);
	cJSON *plan = cJSON_AddObjectToObject(object, "plan");
	cJSON_AddNumberToObject(plan, "tile_rows", (double)f->tile_rows);
	cJSON_AddNumberToObject(plan, "memory_bytes", (double)f->memory);
	cJSON_AddNumberToObject(plan, "scratch_bytes", (double)f->scratch);
	cJSON_AddNumberToObject(plan, "flops", f->flops);
	cJSON_AddNumberToObject(plan, "least_flops", f->min_flops);
	cJSON_AddNumberToObject(plan, "seconds", f->seconds);
	cJSON *maps = cJSON_AddArrayToObject(plan, "maps");
	for (int64_t i = 0; i < f->count; i++)
		add_map(maps, &f->maps[i]);
	return object;
}
