/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/resizer.h"

struct smalti_fit smalti_fit_stretch(int64_t height, int64_t width)
{
	return (struct smalti_fit){
	    .height = height, .width = width, .crop_height = height, .crop_width = width};
}

static bool is_side(int64_t side)
{
	return side >= 1 && side <= SMALTI_FIT_SIDE_MAX;
}

/* Returns side · to / from in the reference's arithmetic: the product exact, the quotient a double, its
 * fraction cut. It can exceed the longest side. */
static int64_t in_proportion(int64_t side, int64_t to, int64_t from)
{
	return (int64_t)((double)(side * to) / (double)from);
}

/* Returns the excess of one side: half, and of an odd number the even one of the two nearest. */
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

enum { CHANNELS = 3 };

struct smalti_resizer {
	int64_t height, width; /* of the image */
	struct smalti_fit fit;
	enum smalti_filter filter;
	smalti_resizer_source *source;
	void *user;
	int64_t rows_read, rows_made;

	uint8_t *row;                /* of the image */
	struct smalti_taps *columns; /* of the crop */
	int32_t *column_weights;     /* of `columns` */
	struct smalti_taps taps;     /* of the row that is being made */
	/* Rows of the image at the crop's width, row r at r % ring_rows. It holds the rows of the taps. */
	int64_t ring_rows;
	uint8_t *ring;
	const uint8_t **window; /* the rows of the taps in order */
};

static bool within(int64_t first, int64_t count, int64_t side)
{
	return side >= 1 && side <= SMALTI_FIT_SIDE_MAX && first >= 0 && count >= 1 && count <= side &&
	       first <= side - count;
}

static int check(int64_t height, int64_t width, const struct smalti_fit *fit, struct smalti_error *error)
{
	if (within(0, 1, height) && within(0, 1, width) && within(fit->top, fit->crop_height, fit->height) &&
	    within(fit->left, fit->crop_width, fit->width))
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "an image of %lldx%lld resized to %lldx%lld and cropped to %lldx%lld+%lld+%lld: "
			   "expected sides of 1 to %d and a crop within them",
			   (long long)width, (long long)height, (long long)fit->width, (long long)fit->height,
			   (long long)fit->crop_width, (long long)fit->crop_height, (long long)fit->left,
			   (long long)fit->top, SMALTI_FIT_SIDE_MAX);
}

/* Allocates the buffers. Sides are below 2^31, so products with a few taps or channels fit 64 bits. */
static int allocate(struct smalti_resizer *r, struct smalti_error *error)
{
	const int64_t columns = r->fit.crop_width;
	const int64_t max = smalti_taps_max(r->filter, r->width, r->fit.width);
	r->ring_rows = smalti_taps_max(r->filter, r->height, r->fit.height);
	r->row = smalti_calloc(r->width, CHANNELS, error);
	r->columns = smalti_calloc(columns, sizeof(*r->columns), error);
	r->column_weights = smalti_calloc(columns, max * (int64_t)sizeof(*r->column_weights), error);
	r->taps.weights = smalti_calloc(r->ring_rows, sizeof(*r->taps.weights), error);
	r->ring = smalti_calloc(r->ring_rows, columns * CHANNELS, error);
	r->window = smalti_calloc(r->ring_rows, sizeof(*r->window), error);
	if (!r->row || !r->columns || !r->column_weights || !r->taps.weights || !r->ring || !r->window)
		return -1;
	for (int64_t i = 0; i < columns; i++) {
		r->columns[i].weights = r->column_weights + i * max;
		smalti_taps_make(r->filter, r->width, r->fit.width, r->fit.left + i, &r->columns[i]);
	}
	return 0;
}

struct smalti_resizer *smalti_resizer_open(int64_t height, int64_t width, const struct smalti_fit *fit,
					   enum smalti_filter filter, smalti_resizer_source *source,
					   void *user, struct smalti_error *error)
{
	if (check(height, width, fit, error) < 0)
		return NULL;
	struct smalti_resizer *r = smalti_calloc(1, sizeof(*r), error);
	if (!r)
		return NULL;
	*r = (struct smalti_resizer){
	    .height = height, .width = width, .fit = *fit, .filter = filter, .source = source, .user = user};
	if (allocate(r, error) == 0)
		return r;
	smalti_resizer_close(r);
	return NULL;
}

static uint8_t *ring_row(struct smalti_resizer *r, int64_t row)
{
	return r->ring + row % r->ring_rows * r->fit.crop_width * CHANNELS;
}

/* Reads the rows before `end`, and keeps those from `first` on. */
static int read_to(struct smalti_resizer *r, int64_t first, int64_t end, struct smalti_error *error)
{
	for (; r->rows_read < end; r->rows_read++) {
		if (r->source(r->user, r->rows_read, 1, r->row, error) < 0)
			return -1;
		if (r->rows_read >= first)
			smalti_resize_along(r->fit.crop_width, r->columns, r->row, ring_row(r, r->rows_read));
	}
	return 0;
}

static int make_row(struct smalti_resizer *r, uint8_t *row, struct smalti_error *error)
{
	struct smalti_taps *taps = &r->taps;
	smalti_taps_make(r->filter, r->height, r->fit.height, r->fit.top + r->rows_made, taps);
	if (read_to(r, taps->first, taps->first + taps->count, error) < 0)
		return -1;
	for (int64_t i = 0; i < taps->count; i++)
		r->window[i] = ring_row(r, taps->first + i);
	smalti_resize_across(r->fit.crop_width, taps, r->window, row);
	r->rows_made++;
	return 0;
}

int smalti_resizer_rows(struct smalti_resizer *r, int64_t first, int64_t count, uint8_t *rows,
			struct smalti_error *error)
{
	if (first != r->rows_made || count < 0 || count > r->fit.crop_height - first)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%lld rows from row %lld of a resized image: expected to begin with row "
				   "%lld of %lld",
				   (long long)count, (long long)first, (long long)r->rows_made,
				   (long long)r->fit.crop_height);
	for (int64_t i = 0; i < count; i++, rows += r->fit.crop_width * CHANNELS)
		if (make_row(r, rows, error) < 0)
			return -1;
	return r->rows_made == r->fit.crop_height ? read_to(r, r->height, r->height, error) : 0;
}

void smalti_resizer_close(struct smalti_resizer *r)
{
	if (!r)
		return;
	free(r->row);
	free(r->columns);
	free(r->column_weights);
	free(r->taps.weights);
	free(r->ring);
	free(r->window);
	free(r);
}
