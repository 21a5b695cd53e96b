/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/tile.h"

/* Notes which tiles each task reads and writes, and how large they are: what would move if the task ran
 * elsewhere. For the inserting thread. */
struct smalti_tile_uses;

struct smalti_tile_uses *smalti_tile_uses_new(struct smalti_error *error);
void smalti_tile_uses_free(struct smalti_tile_uses *uses);

/* Notes a tile that the next inserted task uses. */
void smalti_tile_uses_add(struct smalti_tile_uses *uses, const struct smalti_tile *tile,
			  enum smalti_access access);
/* Notes that it is inserted. Tasks have the numbers of their insertion. */
void smalti_tile_uses_insert(struct smalti_tile_uses *uses);

/* Writes members of a task: the numbers of the tiles that it reads and writes. */
void smalti_tile_uses_write(const struct smalti_tile_uses *uses, int64_t task, FILE *file);
/* Writes a member of the whole: the bytes of each tile, 0 for one that no task uses. */
void smalti_tile_uses_write_tiles(const struct smalti_tile_uses *uses, FILE *file);
