/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/fit.h"

#include <stdbool.h>

struct smalti_fit smalti_fit_stretch(int64_t height, int64_t width)
{
	return (struct smalti_fit){
	    .height = height, .width = width, .crop_height = height, .crop_width = width};
}

static bool is_side(int64_t side)
{
	return side >= 1 && side <= SMALTI_FIT_SIDE_MAX;
}

/* side · to / from in the reference's arithmetic: the product exact, the quotient a double, its fraction cut.
 * It can be past the longest side. */
static int64_t in_proportion(int64_t side, int64_t to, int64_t from)
{
	return (int64_t)((double)(side * to) / (double)from);
}

/* Of what is cut off on both sides: half, and of an odd number the even one of the two nearest. */
static int64_t half_even(int64_t excess)
{
	const int64_t half = excess / 2;
	return excess % 2 ? half + half % 2 : half;
}

int smalti_fit_cover(int64_t from_height, int64_t from_width, int64_t height, int64_t width,
		     struct smalti_fit *fit, struct smalti_error *error)
{
	if (!is_side(from_height) || !is_side(from_width) || !is_side(height) || !is_side(width))
		return smalti_fail(error, SMALTI_EINVAL,
				   "an image of %lldx%lld to cover %lldx%lld: expected sides of 1 to %d",
				   (long long)from_width, (long long)from_height, (long long)width,
				   (long long)height, SMALTI_FIT_SIDE_MAX);
	*fit = smalti_fit_stretch(height, width);
	if ((double)height / (double)from_height > (double)width / (double)from_width)
		fit->width = in_proportion(from_width, height, from_height);
	else
		fit->height = in_proportion(from_height, width, from_width);
	if (!is_side(fit->height) || !is_side(fit->width))
		return smalti_fail(error, SMALTI_EINVAL,
				   "an image of %lldx%lld to cover %lldx%lld: it would be resized to "
				   "%lldx%lld, past the longest side of %d; it has to be cropped before",
				   (long long)from_width, (long long)from_height, (long long)width,
				   (long long)height, (long long)fit->width, (long long)fit->height,
				   SMALTI_FIT_SIDE_MAX);
	fit->top = half_even(fit->height - height);
	fit->left = half_even(fit->width - width);
	return 0;
}
