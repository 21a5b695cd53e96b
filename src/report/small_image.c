/* SPDX-License-Identifier: Apache-2.0 */
#include "report/small_image.h"
#include "base/base64.h"
#include "image/image_writer.h"
#include "image/turned.h"

enum { MAX_PIXELS = 1 << 28, MAX_BYTES = 1 << 30 };

/* Shrinks in proportion; what is small already keeps its size. */
static struct smalti_fit small_fit(const struct smalti_turned_image *image, int64_t max)
{
	const int64_t longest = smalti_max(image->width, image->height);
	const int64_t side = smalti_min(longest, max);
	return smalti_fit_stretch(smalti_max(image->height * side / longest, 1),
				  smalti_max(image->width * side / longest, 1));
}

static int write_small(struct smalti_resizer *resizer, const struct smalti_fit *fit, FILE *out,
		       struct smalti_error *error)
{
	const struct smalti_image_format format = {
	    .encoding = SMALTI_IMAGE_PNG, .width = fit->width, .height = fit->height, .depth = 8};
	uint8_t row[SMALTI_SMALL_SIDE * 3];
	struct smalti_image_writer *png = smalti_image_begin(out, "the page", &format, error);
	int status = png ? 0 : -1;
	for (int64_t at = 0; at < fit->height && status == 0; at++)
		status = smalti_resizer_rows(resizer, at, 1, row, error) < 0 ||
				 smalti_image_write_rows(png, at, 1, row, error) < 0
			     ? -1
			     : 0;
	if (status == 0)
		status = smalti_image_finish(png, error);
	smalti_image_abort(png);
	return status;
}

static bool is_beneath(const char *path, const char *directory)
{
	const size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);
	return strncmp(path, directory, length) == 0 && path[length] == '/';
}

char *smalti_path_beneath(const char *directory, const char *name, struct smalti_error *error)
{
	char *path = smalti_format(error, "%s/%s", directory, name);
	if (!path)
		return NULL;
	SCOPED(free) char *top = realpath(directory, NULL);
	SCOPED(free) char *found = top ? realpath(path, NULL) : NULL;
	if (found && is_beneath(found, top))
		return path;
	if (found)
		smalti_fail(error, SMALTI_EINVAL, "%s: is not shown, for it leads out of %s", path,
			    directory);
	else
		smalti_fail_errno(error, "%s: cannot be opened", path);
	free(path);
	return NULL;
}

char *smalti_small_image(const char *path, int64_t side, struct smalti_fit *fit, struct smalti_error *error)
{
	const struct smalti_image_limits limits = {MAX_PIXELS, MAX_BYTES};
	struct smalti_image_reader *image = smalti_image_open(path, &limits, error);
	struct smalti_turned_image turned = {0};
	struct smalti_resizer *resizer = NULL;
	char *data = NULL, *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&data, &size);
	if (image) {
		smalti_turned_open(&turned, image, smalti_image_info(image)->orientation);
		*fit = small_fit(&turned, side);
		resizer = smalti_resizer_open(turned.height, turned.width, fit, SMALTI_FILTER_LANCZOS,
					      smalti_turned_rows, &turned, error);
	}
	const bool written = resizer && out && write_small(resizer, fit, out, error) == 0;
	if (out && fclose(out) == 0 && written)
		text = smalti_base64(data, (int64_t)size, error);
	free(data);
	smalti_resizer_close(resizer);
	smalti_turned_close(&turned);
	smalti_image_close(image);
	return text;
}
