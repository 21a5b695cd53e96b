/* SPDX-License-Identifier: Apache-2.0 */
#include "image/turned.h"
#include "image/image_decoder.h"

/* For EXIF's orientations 1 to 8: whether rows and columns change places, and which way the stored ones then
 * run. */
static const struct turn {
	bool transposed, rows_back, columns_back;
} turns[] = {
    {false, false, false}, {false, false, true}, {false, true, true}, {false, true, false},
    {true, false, false},  {true, true, false},  {true, true, true},  {true, false, true},
};

static const struct turn *turn_of(const struct smalti_turned_image *turned)
{
	return &turns[turned->orientation - 1];
}

/* Tells whether its rows are stored rows, in their order. */
static bool streams(const struct turn *turn)
{
	return !turn->transposed && !turn->rows_back;
}

void smalti_turned_open(struct smalti_turned_image *turned, struct smalti_image_reader *image,
			int orientation)
{
	const struct smalti_image_info *info = smalti_image_info(image);
	*turned = (struct smalti_turned_image){.image = image, .orientation = orientation};
	const bool transposed = turn_of(turned)->transposed;
	turned->height = transposed ? info->width : info->height;
	turned->width = transposed ? info->height : info->width;
}

/* Prepares the first row: takes memory for one row, or reads the whole image. */
static int begin(struct smalti_turned_image *turned, struct smalti_error *error)
{
	const struct smalti_image_info *info = smalti_image_info(turned->image);
	const bool whole = !streams(turn_of(turned));
	const int64_t held = whole ? info->height : 1;
	if (smalti_image_hold(turned->image, "an image to be turned", 3 * info->width * held, error) < 0)
		return -1;
	turned->held = smalti_calloc(held, 3 * info->width, error);
	if (!turned->held)
		return -1;
	return whole ? smalti_image_read_rows(turned->image, 0, held, turned->held, error) : 0;
}

/* Copies row `y`, pixel after pixel, out of what is held. */
static void turn_row(const struct smalti_turned_image *turned, int64_t y, uint8_t *rgb)
{
	const struct smalti_image_info *info = smalti_image_info(turned->image);
	const struct turn *turn = turn_of(turned);
	for (int64_t x = 0; x < turned->width; x++) {
		int64_t row = turn->transposed ? x : y, column = turn->transposed ? y : x;
		row = turn->rows_back ? info->height - 1 - row : row;
		column = turn->columns_back ? info->width - 1 - column : column;
		memcpy(rgb + 3 * x, turned->held + 3 * (streams(turn) ? column : row * info->width + column),
		       3);
	}
}

int smalti_turned_rows(void *user, int64_t first, int64_t count, uint8_t *rows, struct smalti_error *error)
{
	struct smalti_turned_image *turned = user;
	const struct turn *turn = turn_of(turned);
	if (turned->orientation == 1)
		return smalti_image_read_rows(turned->image, first, count, rows, error);
	if (first == 0 && begin(turned, error) < 0)
		return -1;
	for (int64_t y = first; y < first + count; y++) {
		if (streams(turn) && smalti_image_read_rows(turned->image, y, 1, turned->held, error) < 0)
			return -1;
		turn_row(turned, y, rows + (y - first) * turned->width * 3);
	}
	return 0;
}

void smalti_turned_close(struct smalti_turned_image *turned)
{
	free(turned->held);
	*turned = (struct smalti_turned_image){0};
}
