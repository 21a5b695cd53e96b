/* SPDX-License-Identifier: Apache-2.0 */
#include "image/picture.h"
#include "image/turned.h"

/* Returns the limits of a picture: formats that hold an image whole take what its pixels do, and some more.
 */
static struct smalti_image_limits limits_of(int64_t pixels)
{
	enum { BYTES = 8 };
	return (struct smalti_image_limits){.pixels = pixels, .bytes = BYTES * pixels};
}

static int read_all(struct smalti_picture *picture, struct smalti_image_reader *image,
		    struct smalti_error *error)
{
	struct smalti_turned_image turned;
	smalti_turned_open(&turned, image, smalti_image_info(image)->orientation);
	picture->width = turned.width;
	picture->height = turned.height;
	picture->pixels = smalti_calloc(turned.height, 3 * turned.width, error);
	const int status =
	    picture->pixels ? smalti_turned_rows(&turned, 0, turned.height, picture->pixels, error) : -1;
	smalti_turned_close(&turned);
	return status;
}

/* Reads an image, which it closes; NULL: it could not be opened. */
static int read_picture(struct smalti_picture *picture, struct smalti_image_reader *image,
			struct smalti_error *error)
{
	*picture = (struct smalti_picture){0};
	const int status = image ? read_all(picture, image, error) : -1;
	smalti_image_close(image);
	if (status < 0)
		smalti_picture_free(picture);
	return status;
}

int smalti_picture_read(struct smalti_picture *picture, const char *path, int64_t pixels,
			struct smalti_error *error)
{
	const struct smalti_image_limits limits = limits_of(pixels);
	return read_picture(picture, smalti_image_open(path, &limits, error), error);
}

int smalti_picture_read_memory(struct smalti_picture *picture, const char *name, const void *data,
			       int64_t bytes, int64_t pixels, struct smalti_error *error)
{
	const struct smalti_image_limits limits = limits_of(pixels);
	return read_picture(picture, smalti_image_open_memory(name, data, bytes, &limits, error), error);
}

void smalti_picture_make_grey(struct smalti_picture *picture)
{
	enum { RED = 19595, GREEN = 38470, BLUE = 7471, HALF = 0x8000, BITS = 16 };
	unsigned char *x = picture->pixels;
	for (int64_t i = 0; i < picture->height * picture->width; i++)
		x[i] = (unsigned char)((RED * x[3 * i] + GREEN * x[3 * i + 1] + BLUE * x[3 * i + 2] + HALF) >>
				       BITS);
}

void smalti_picture_free(struct smalti_picture *picture)
{
	free(picture->pixels);
	*picture = (struct smalti_picture){0};
}
