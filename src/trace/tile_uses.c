/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tile_uses.h"
#include "rt/tile_forms.h"

struct use {
	int64_t tile;
	bool reads, writes;
};

struct smalti_tile_uses {
	struct use *uses; /* of all tasks, in their order */
	int64_t use_count;
	int64_t *end; /* where each task's uses end */
	int64_t tasks;
	int64_t *tiles; /* their bytes, by their numbers */
	int64_t tile_room;
};

struct smalti_tile_uses *smalti_tile_uses_new(struct smalti_error *error)
{
	return smalti_calloc(1, sizeof(struct smalti_tile_uses), error);
}

void smalti_tile_uses_free(struct smalti_tile_uses *uses)
{
	if (!uses)
		return;
	free(uses->uses);
	free(uses->end);
	free(uses->tiles);
	free(uses);
}

void smalti_tile_uses_add(struct smalti_tile_uses *uses, const struct smalti_tile *tile,
			  enum smalti_access access)
{
	if (access == SMALTI_WAIT ||
	    smalti_grow_to(&uses->tiles, &uses->tile_room, tile->number, sizeof(*uses->tiles), NULL) < 0 ||
	    smalti_grow(&uses->uses, uses->use_count, sizeof(*uses->uses), NULL) < 0)
		return;
	uses->tiles[tile->number] = smalti_tile_moved_bytes(tile);
	uses->uses[uses->use_count++] =
	    (struct use){tile->number, access != SMALTI_WRITE, access != SMALTI_READ};
}

void smalti_tile_uses_insert(struct smalti_tile_uses *uses)
{
	if (smalti_grow(&uses->end, uses->tasks, sizeof(*uses->end), NULL) == 0)
		uses->end[uses->tasks++] = uses->use_count;
}

void smalti_tile_uses_write(const struct smalti_tile_uses *uses, int64_t task, FILE *file)
{
	const char *const keys[] = {"reads", "writes"};
	if (task < 0 || task >= uses->tasks)
		return;
	for (int key = 0; key < 2; key++) {
		const char *comma = "";
		fprintf(file, ",\"%s\":[", keys[key]);
		for (int64_t i = task ? uses->end[task - 1] : 0; i < uses->end[task]; i++)
			if (key ? uses->uses[i].writes : uses->uses[i].reads) {
				fprintf(file, "%s%" PRId64, comma, uses->uses[i].tile);
				comma = ",";
			}
		fputc(']', file);
	}
}

void smalti_tile_uses_write_tiles(const struct smalti_tile_uses *uses, FILE *file)
{
	fputs(",\"tiles\":[", file);
	for (int64_t i = 0; i < uses->tile_room; i++)
		fprintf(file, "%s%" PRId64, i ? "," : "", uses->tiles[i]);
	fputc(']', file);
}
