/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate.h"

/* Reads the picture of that path, unless it is there from the request before. */
static int read_picture(struct smalti_named_picture *of, const char *path, bool grey,
			struct smalti_error *error)
{
	if (of->path && strcmp(of->path, path) == 0)
		return 0;
	smalti_named_picture_free(of);
	enum { MAX_PIXELS = 1 << 28 }; /* a header can claim any size */
	if (smalti_picture_read(&of->picture, path, MAX_PIXELS, error) < 0)
		return -1;
	if (grey)
		smalti_picture_make_grey(&of->picture);
	of->path = smalti_format(error, "%s", path);
	return of->path ? 0 : -1;
}

int smalti_generation_read_pictures(struct smalti_generation *generation, const char *image, const char *mask,
				    struct smalti_request *request, struct smalti_error *error)
{
	if (image && read_picture(&generation->image, image, false, error) < 0) {
		smalti_error_prefix(error, "image");
		return -1;
	}
	if (mask && read_picture(&generation->mask, mask, true, error) < 0) {
		smalti_error_prefix(error, "mask");
		return -1;
	}
	if (image) {
		request->image = generation->image.picture.pixels;
		request->image_width = generation->image.picture.width;
		request->image_height = generation->image.picture.height;
	}
	if (mask) {
		request->mask = generation->mask.picture.pixels;
		request->mask_width = generation->mask.picture.width;
		request->mask_height = generation->mask.picture.height;
	}
	return 0;
}

void smalti_named_picture_free(struct smalti_named_picture *picture)
{
	free(picture->path);
	picture->path = NULL;
	smalti_picture_free(&picture->picture);
}
