/* SPDX-License-Identifier: Apache-2.0 */
#include "image/upright.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of EXIF's orientations 1 to 8: whether rows and columns change places, and which way those of what is
 * stored then run. */
static const struct turn {
	bool transposed, rows_back, columns_back;
} turns[] = {
    {false, false, false}, {false, false, true}, {false, true, true}, {false, true, false},
    {true, false, false},  {true, true, false},  {true, true, true},  {true, false, true},
};

static const struct turn *turn_of(const struct smalti_upright *upright)
{
	return &turns[upright->orientation - 1];
}

/* Whether its rows are stored rows, in their order. */
static bool streams(const struct turn *turn)
{
	return !turn->transposed && !turn->rows_back;
}

void smalti_upright_open(struct smalti_upright *upright, const char *name, struct smalti_image_reader *image,
			 bool stored, int64_t most_bytes)
{
	const struct smalti_image_info *info = smalti_image_info(image);
	*upright = (struct smalti_upright){.name = name,
					   .image = image,
					   .orientation = stored ? 1 : info->orientation,
					   .most_bytes = most_bytes};
	const bool transposed = turn_of(upright)->transposed;
	upright->height = transposed ? info->width : info->height;
	upright->width = transposed ? info->height : info->width;
}

/* Before the first row: the memory for one row, or the whole image. */
static int begin(struct smalti_upright *upright, struct smalti_error *error)
{
	const struct smalti_image_info *info = smalti_image_info(upright->image);
	const bool whole = !streams(turn_of(upright));
	const int64_t bytes = 3 * info->width * (whole ? info->height : 1);
	if (bytes > upright->most_bytes)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: an image that has to be turned is held whole: %" PRId64
				   " bytes, at most %" PRId64 " are allowed",
				   upright->name, bytes, upright->most_bytes);
	upright->held = smalti_calloc(bytes, 1, error);
	if (!upright->held)
		return -1;
	return whole ? smalti_image_read_rows(upright->image, 0, info->height, upright->held, error) : 0;
}

/* Row `y`, pixel after pixel, out of what is held. */
static void turn_row(const struct smalti_upright *upright, int64_t y, uint8_t *rgb)
{
	const struct smalti_image_info *info = smalti_image_info(upright->image);
	const struct turn *turn = turn_of(upright);
	for (int64_t x = 0; x < upright->width; x++) {
		int64_t row = turn->transposed ? x : y, column = turn->transposed ? y : x;
		row = turn->rows_back ? info->height - 1 - row : row;
		column = turn->columns_back ? info->width - 1 - column : column;
		memcpy(rgb + 3 * x, upright->held + 3 * (streams(turn) ? column : row * info->width + column),
		       3);
	}
}

int smalti_upright_rows(struct smalti_upright *upright, int64_t first, int64_t count, uint8_t *rows,
			struct smalti_error *error)
{
	const struct turn *turn = turn_of(upright);
	if (upright->orientation == 1)
		return smalti_image_read_rows(upright->image, first, count, rows, error);
	if (first == 0 && begin(upright, error) < 0)
		return -1;
	for (int64_t y = first; y < first + count; y++) {
		if (streams(turn) && smalti_image_read_rows(upright->image, y, 1, upright->held, error) < 0)
			return -1;
		turn_row(upright, y, rows + (y - first) * upright->width * 3);
	}
	return 0;
}

void smalti_upright_close(struct smalti_upright *upright)
{
	free(upright->held);
	*upright = (struct smalti_upright){0};
}
