/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/upright.h"

#include "base/alloc.h"
#include "kernels/layout.h"

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

static const struct turn *turn_of(const struct smalti_upright *picture)
{
	return &turns[smalti_image_info(picture->image)->orientation - 1];
}

/* Whether its rows are stored rows, in their order. */
static bool streams(const struct turn *turn)
{
	return !turn->transposed && !turn->rows_back;
}

static int crop(struct smalti_upright *picture, int64_t multiple, struct smalti_error *error)
{
	const struct smalti_image_info *info = smalti_image_info(picture->image);
	const bool transposed = turn_of(picture)->transposed;
	picture->whole_width = transposed ? info->height : info->width;
	picture->whole_height = transposed ? info->width : info->height;
	picture->width = picture->whole_width / multiple * multiple;
	picture->height = picture->whole_height / multiple * multiple;
	picture->left = (picture->whole_width - picture->width) / 2;
	picture->top = (picture->whole_height - picture->height) / 2;
	if (picture->width > 0 && picture->height > 0)
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "%s: a picture of %" PRId64 "x%" PRId64
			   " pixels cannot be encoded: a latent stands for "
			   "%" PRId64 "x%" PRId64,
			   picture->path, picture->whole_width, picture->whole_height, multiple, multiple);
}

int smalti_upright_open(struct smalti_upright *picture, const char *path, int64_t multiple,
			const struct smalti_image_limits *limits, struct smalti_error *error)
{
	*picture = (struct smalti_upright){.path = path, .most_bytes = limits->bytes};
	picture->image = smalti_image_open(path, limits, error);
	return picture->image ? crop(picture, multiple, error) : -1;
}

/* Stored rows that nobody wants. */
static int skip(struct smalti_upright *picture, int64_t first, int64_t end, struct smalti_error *error)
{
	for (int64_t row = first; row < end; row++)
		if (smalti_image_read_rows(picture->image, row, 1, picture->held, error) < 0)
			return -1;
	return 0;
}

/* Before the first row: the memory for one row and what lies above the crop, or the whole picture. */
static int begin(struct smalti_upright *picture, struct smalti_error *error)
{
	const struct smalti_image_info *info = smalti_image_info(picture->image);
	const bool whole = !streams(turn_of(picture));
	const int64_t bytes = 3 * info->width * (whole ? info->height : 1);
	if (bytes > picture->most_bytes)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: a picture that has to be turned is held whole: %" PRId64
				   " bytes, at most %" PRId64 " are allowed",
				   picture->path, bytes, picture->most_bytes);
	picture->held = smalti_calloc(bytes, 1, error);
	if (!picture->held)
		return -1;
	return whole ? smalti_image_read_rows(picture->image, 0, info->height, picture->held, error)
		     : skip(picture, 0, picture->top, error);
}

/* Pixel after pixel of row `y` of the whole picture, from column `left` on. */
static void turn_row(const struct smalti_upright *picture, int64_t y, const unsigned char *stored, float *rgb)
{
	const struct smalti_image_info *info = smalti_image_info(picture->image);
	const struct turn *turn = turn_of(picture);
	for (int64_t i = 0; i < picture->width; i++) {
		const int64_t x = picture->left + i;
		int64_t row = turn->transposed ? x : y, column = turn->transposed ? y : x;
		row = turn->rows_back ? info->height - 1 - row : row;
		column = turn->columns_back ? info->width - 1 - column : column;
		smalti_from_u8(3, stored + 3 * (streams(turn) ? column : row * info->width + column),
			       rgb + 3 * i);
	}
}

static int give_row(struct smalti_upright *picture, int64_t y, float *rgb, struct smalti_error *error)
{
	const struct turn *turn = turn_of(picture);
	if (streams(turn) && smalti_image_read_rows(picture->image, y, 1, picture->held, error) < 0)
		return -1;
	if (streams(turn) && !turn->columns_back)
		smalti_from_u8(3 * picture->width, picture->held + 3 * picture->left, rgb);
	else
		turn_row(picture, y, picture->held, rgb);
	return 0;
}

int smalti_upright_rows(struct smalti_upright *picture, int64_t first, int64_t count, float *rgb,
			struct smalti_error *error)
{
	if (first == 0 && begin(picture, error) < 0)
		return -1;
	for (int64_t row = 0; row < count; row++)
		if (give_row(picture, picture->top + first + row, rgb + row * picture->width * 3, error) < 0)
			return -1;
	if (first + count < picture->height || !streams(turn_of(picture)))
		return 0;
	return skip(picture, picture->top + picture->height, picture->whole_height, error);
}

void smalti_upright_close(struct smalti_upright *picture)
{
	smalti_image_close(picture->image);
	free(picture->held);
	*picture = (struct smalti_upright){0};
}
