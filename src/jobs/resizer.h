/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_RESIZER_H
#define SMALTI_JOBS_RESIZER_H

#include "jobs/fit.h"
#include "kernels/resize.h"

/* Resizes and crops an image as its rows pass by: only what a row of the result is made of is held, at the
 * result's width. Bits are those of the whole image resized by Pillow, then cropped. */
struct smalti_resizer;

/* Rows first … first + count − 1 of the image, [count, width, 3] of 8-bit RGB. Each call begins where the
 * last ended. */
typedef int smalti_resizer_source(void *user, int64_t first, int64_t count, uint8_t *rows,
				  struct smalti_error *error);

/* Of an image of height by width that `source` gives; reads nothing yet. EINVAL for a fit with sides that no
 * image has, or with a crop that lies not within them. */
struct smalti_resizer *smalti_resizer_open(int64_t height, int64_t width, const struct smalti_fit *fit,
					   enum smalti_filter filter, smalti_resizer_source *source,
					   void *user, struct smalti_error *error);

/* Rows first … first + count − 1 of the crop, [count, crop_width, 3]; each call begins where the last ended.
 * The source is read to the image's end with the last row, so that damage there shows, too. After a failure
 * only the close is left. */
int smalti_resizer_rows(struct smalti_resizer *resizer, int64_t first, int64_t count, uint8_t *rows,
			struct smalti_error *error);

void smalti_resizer_close(struct smalti_resizer *resizer); /* NULL is fine */

#endif
