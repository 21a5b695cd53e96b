/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/interpolator.h"

enum { CHANNELS = 3 };

/* A sample between two of an axis: the second one's part is `weight`. */
struct between {
	int64_t first, second;
	float weight;
};

/* An axis that is resized, then cropped. */
struct axis {
	int64_t from, resized, start, to;
};

struct smalti_interpolator {
	struct axis rows, columns;
	struct between *column; /* of each column of the result */
	float *last;            /* the last row of the image that was given */
	float *made;            /* a row of the result */
	int64_t next;           /* row of the result */
};

/* Uses torch's arithmetic, in floats. */
static struct between between_of(const struct axis *axis, int64_t at)
{
	const float scale = (float)axis->from / (float)axis->resized;
	const float place = scale * ((float)(axis->start + at) + 0.5F) - 0.5F;
	struct between b = {.first = place > 0 ? (int64_t)place : 0};
	b.first = b.first < axis->from ? b.first : axis->from - 1;
	b.second = b.first + (b.first < axis->from - 1);
	b.weight = place > (float)b.first ? place - (float)b.first : 0;
	b.weight = b.weight < 1 ? b.weight : 1;
	return b;
}

static struct axis axis_of(int64_t from, int64_t to, double ratio)
{
	const int64_t resized = (int64_t)((double)from * ratio);
	struct axis axis = {.from = from, .resized = resized > to ? resized : to, .to = to};
	axis.start = (axis.resized - to) / 2;
	return axis;
}

struct smalti_interpolator *smalti_interpolator_new(int64_t from_height, int64_t from_width, int64_t height,
						    int64_t width, struct smalti_error *error)
{
	const double tall = (double)height / (double)from_height, wide = (double)width / (double)from_width;
	const double ratio = tall > wide ? tall : wide;
	struct smalti_interpolator *it = smalti_calloc(1, sizeof(*it), error);
	if (!it)
		return NULL;
	it->rows = axis_of(from_height, height, ratio);
	it->columns = axis_of(from_width, width, ratio);
	it->column = smalti_calloc(width, sizeof(*it->column), error);
	it->last = smalti_calloc(from_width, CHANNELS * sizeof(float), error);
	it->made = smalti_calloc(width, CHANNELS * sizeof(float), error);
	if (!it->column || !it->last || !it->made) {
		smalti_interpolator_free(it);
		return NULL;
	}
	for (int64_t x = 0; x < width; x++)
		it->column[x] = between_of(&it->columns, x);
	return it;
}

void smalti_interpolator_free(struct smalti_interpolator *it)
{
	if (!it)
		return;
	free(it->column);
	free(it->last);
	free(it->made);
	free(it);
}

static void make_row(struct smalti_interpolator *it, const float *upper, const float *lower, float weight)
{
	for (int64_t x = 0; x < it->columns.to; x++) {
		const struct between *b = &it->column[x];
		for (int64_t c = 0; c < CHANNELS; c++) {
			const int64_t left = b->first * CHANNELS + c, right = b->second * CHANNELS + c;
			it->made[x * CHANNELS + c] =
			    (1 - weight) * ((1 - b->weight) * upper[left] + b->weight * upper[right]) +
			    weight * ((1 - b->weight) * lower[left] + b->weight * lower[right]);
		}
	}
}

int smalti_interpolator_rows(struct smalti_interpolator *it, int64_t first, int64_t count, const float *rows,
			     smalti_interpolator_sink *sink, void *user, struct smalti_error *error)
{
	const int64_t line = it->columns.from * CHANNELS;
	int status = 0;
	for (; status == 0 && it->next < it->rows.to; it->next++) {
		const struct between b = between_of(&it->rows, it->next);
		if (b.second >= first + count)
			break;
		/* rows that ended with earlier calls are made: the upper row is at least the last one */
		const float *upper = b.first < first ? it->last : rows + (b.first - first) * line;
		const float *lower = b.second < first ? it->last : rows + (b.second - first) * line;
		make_row(it, upper, lower, b.weight);
		status = sink(user, it->next, it->made, error);
	}
	if (count > 0)
		memcpy(it->last, rows + (count - 1) * line, (size_t)line * sizeof(float));
	return status;
}
