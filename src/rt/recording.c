/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/recording.h"
#include "rt/tile.h"

static int make_room(struct smalti_recording *r, struct smalti_error *error)
{
	if (r->message && r->message->steps < r->capacity)
		return 0;
	const int capacity = r->capacity ? 4 * r->capacity : 1;
	struct smalti_message *message =
	    realloc(r->message, sizeof(*message) + (size_t)capacity * sizeof(message->step[0]));
	if (!message)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a task");
	if (!r->message)
		*message = (struct smalti_message){.steps = 0};
	r->message = message;
	r->capacity = capacity;
	return 0;
}

int smalti_recording_number(const struct smalti_recording *r, const struct smalti_tile *tile)
{
	const int number = tile->number_in_task;
	return number < r->tiles && r->use[number].tile == tile ? number : -1;
}

/* Adds an access; returns the tile's number. */
static int use_tile(struct smalti_recording *r, struct smalti_tile *tile, enum smalti_access access)
{
	const int step = r->message->steps, known = smalti_recording_number(r, tile);
	if (known >= 0) {
		r->use[known].last = step;
		if (access != r->use[known].access && r->use[known].access == SMALTI_READ)
			r->use[known].access = SMALTI_UPDATE;
		return known;
	}
	r->use[r->tiles] = (struct smalti_tile_use){tile, access, step, step};
	r->bytes += tile->rows * tile->row_bytes;
	tile->number_in_task = r->tiles;
	return r->tiles++;
}

int smalti_recording_add(struct smalti_recording *r, const struct smalti_op *op,
			 struct smalti_tile *const *tiles, const void *arguments, struct smalti_error *error)
{
	if (make_room(r, error) < 0)
		return -1;
	struct smalti_step *step = &r->message->step[r->message->steps];
	step->op = (int)(op - smalti_ops);
	memcpy(step->arguments, arguments, op->arguments_size);
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++)
		for (int i = 0; i < op->buffers[kind].count; i++, index++) {
			step->slot[index] = SMALTI_NO_SLOT;
			if (tiles[index])
				step->slot[index] =
				    (int16_t)use_tile(r, tiles[index], smalti_op_access(op, kind, arguments));
			else if (smalti_op_check_missing(op, &op->buffers[kind], error) < 0)
				return -1;
		}
	r->message->steps++;
	return 0;
}
