/* SPDX-License-Identifier: Apache-2.0 */
/* shown IMAGE...: whether images of the embedded model show what their prompts say, which stand in the
 * files: "a red star above a blue ring on a white background". Says what is missing, and then fails. */
#include "base/base.h"
#include "image/image.h"
#include "image/png_reader.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLOURS = 12, SHAPES = 8, SIDE = 48, EDGE = 4, MOST = 1 << 20 };

static const struct {
	const char *name;
	int red, green, blue;
} colours[COLOURS] = {{"red", 214, 40, 40},     {"green", 42, 157, 74},   {"blue", 38, 84, 212},
		      {"yellow", 250, 208, 44}, {"orange", 244, 125, 32}, {"purple", 123, 44, 191},
		      {"pink", 248, 145, 190},  {"cyan", 64, 205, 224},   {"brown", 121, 76, 44},
		      {"white", 245, 245, 245}, {"black", 26, 26, 30},    {"gray", 140, 144, 150}};

static bool in_circle(double x, double y)
{
	return hypot(x, y) < 1;
}

static bool in_square(double x, double y)
{
	return fmax(fabs(x), fabs(y)) < 1;
}

static bool in_triangle(double x, double y)
{
	return 0.88 * fabs(x) - 0.475 * (y + 1) < 0 && y < 0.8;
}

static bool in_diamond(double x, double y)
{
	return fabs(x) + fabs(y) < 1;
}

static bool in_ring(double x, double y)
{
	return fabs(hypot(x, y) - 0.75) < 0.27;
}

static bool in_star(double x, double y)
{
	const double k = 2 * acos(-1) / 5, turn = fmod(atan2(x, -y) + 4.5 * k, k) - k / 2, r = hypot(x, y);
	const double px = r * cos(turn), py = r * fabs(sin(turn));
	const double ix = 0.46 * cos(k / 2),
		     iy = 0.46 * sin(k / 2); /* the inner corner; the tip is at 1.1, 0 */
	return (px - 1.1) * iy + py * (1.1 - ix) < 0;
}

static bool in_heart(double x, double y)
{
	const double up = -(y - 0.08) * 1.15, aside = fabs(x) * 1.1;
	return pow(aside * aside + up * up - 0.75, 3) * 1.2 - aside * aside * up * up * up * 2.4 < 0;
}

static bool in_cross(double x, double y)
{
	const double across = fabs(x), along = fabs(y);
	return fmin(fmax(across - 0.32, along - 1), fmax(across - 1, along - 0.32)) < 0;
}

static const struct {
	const char *name;
	bool (*holds)(double x, double y); /* y grows downwards */
} shapes[SHAPES] = {{"circle", in_circle},   {"square", in_square}, {"triangle", in_triangle},
		    {"diamond", in_diamond}, {"ring", in_ring},     {"star", in_star},
		    {"heart", in_heart},     {"cross", in_cross}};

/* Pixels that belong to something: as bytes 1. */
struct mask {
	int width, height;
	unsigned char *in;
};

struct place {
	double x, y;
};

/* What an image is: its pixels as numbers of colours. */
struct image {
	int width, height;
	unsigned char *colour;
};

static int nearest_colour(const unsigned char *rgb)
{
	int best = 0, min = 1 << 30;
	for (int i = 0; i < COLOURS; i++) {
		const int red = rgb[0] - colours[i].red, green = rgb[1] - colours[i].green,
			  blue = rgb[2] - colours[i].blue;
		const int far = red * red + green * green + blue * blue;
		best = far < min ? i : best;
		min = far < min ? far : min;
	}
	return best;
}

static void *memory(size_t bytes)
{
	void *made = calloc(bytes, 1);
	if (!made)
		abort();
	return made;
}

static int read_image(const char *path, struct image *image, struct smalti_error *error)
{
	const struct smalti_image_limits limits = {.pixels = MOST, .bytes = 16 * MOST};
	struct smalti_image_reader *reader = smalti_image_open(path, &limits, error);
	if (!reader)
		return -1;
	const struct smalti_image_info *info = smalti_image_info(reader);
	const size_t count = (size_t)info->width * (size_t)info->height;
	unsigned char *rgb = memory(3 * count);
	image->width = (int)info->width;
	image->height = (int)info->height;
	image->colour = memory(count);
	const int status = smalti_image_read_rows(reader, 0, info->height, rgb, error);
	for (size_t i = 0; i < count && status == 0; i++)
		image->colour[i] = (unsigned char)nearest_colour(rgb + 3 * i);
	free(rgb);
	smalti_image_close(reader);
	return status;
}

/* The colour that most of the image's rim has. */
static int background_of(const struct image *p)
{
	int count[COLOURS] = {0}, best = 0;
	for (int y = 0; y < p->height; y++)
		for (int x = 0; x < p->width; x++)
			if (x < EDGE || y < EDGE || x >= p->width - EDGE || y >= p->height - EDGE)
				count[p->colour[y * p->width + x]]++;
	for (int i = 0; i < COLOURS; i++)
		best = count[i] > count[best] ? i : best;
	return best;
}

/* Takes the connected part at `start` out of `from` and into `to`: its pixels. */
static int take_part(struct mask *from, int start, unsigned char *to, int *stack)
{
	int size = 0, waiting = 0;
	stack[waiting++] = start;
	from->in[start] = 0;
	while (waiting) {
		const int at = stack[--waiting], x = at % from->width;
		const int beside[] = {x > 0 ? at - 1 : -1, x + 1 < from->width ? at + 1 : -1,
				      at - from->width, at + from->width};
		to[at] = 1;
		size++;
		for (int i = 0; i < 4; i++)
			if (beside[i] >= 0 && beside[i] < from->width * from->height && from->in[beside[i]]) {
				from->in[beside[i]] = 0;
				stack[waiting++] = beside[i];
			}
	}
	return size;
}

/* The largest connected part of a colour, and how many pixels it has. */
static int largest_part(const struct image *p, int colour, struct mask *part)
{
	const int count = p->width * p->height;
	struct mask left = {p->width, p->height, memory((size_t)count)};
	unsigned char *found = memory((size_t)count);
	int *stack = memory((size_t)count * sizeof(*stack)), max = 0;
	*part = (struct mask){p->width, p->height, memory((size_t)count)};
	for (int i = 0; i < count; i++)
		left.in[i] = p->colour[i] == colour;
	for (int i = 0; i < count; i++) {
		if (!left.in[i])
			continue;
		memset(found, 0, (size_t)count);
		const int size = take_part(&left, i, found, stack);
		if (size > max)
			memcpy(part->in, found, (size_t)count);
		max = size > max ? size : max;
	}
	free(left.in);
	free(found);
	free(stack);
	return max;
}

/* A mask's box, made square and scaled to SIDE by SIDE. */
static void normalise(const struct mask *mask, bool square[SIDE * SIDE], struct place *middle)
{
	int left = mask->width, right = 0, top = mask->height, bottom = 0;
	double x_sum = 0, y_sum = 0, count = 0;
	for (int y = 0; y < mask->height; y++)
		for (int x = 0; x < mask->width; x++)
			if (mask->in[y * mask->width + x]) {
				left = x < left ? x : left;
				right = x > right ? x : right;
				top = y < top ? y : top;
				bottom = y > bottom ? y : bottom;
				x_sum += x;
				y_sum += y;
				count++;
			}
	const int wide = right - left + 1, tall = bottom - top + 1, side = wide > tall ? wide : tall;
	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			const int y = (int)((i + 0.5) * side / SIDE) + top - (side - tall) / 2;
			const int x = (int)((j + 0.5) * side / SIDE) + left - (side - wide) / 2;
			square[i * SIDE + j] = x >= left && x <= right && y >= top && y <= bottom &&
					       mask->in[y * mask->width + x];
		}
	*middle = (struct place){x_sum / count, y_sum / count};
}

/* A shape as the world of the model draws it, as a mask is. */
static void draw(int shape, bool square[SIDE * SIDE])
{
	enum { FINE = 200 };
	static unsigned char pixels[FINE * FINE];
	struct mask mask = {FINE, FINE, pixels};
	struct place middle;
	for (int i = 0; i < FINE * FINE; i++) {
		const int row = i / FINE, column = i % FINE;
		pixels[i] =
		    shapes[shape].holds((column + 0.5) / FINE * 3 - 1.5, (row + 0.5) / FINE * 3 - 1.5);
	}
	normalise(&mask, square, &middle);
}

/* The shape that has most in common with a mask. */
static int shape_of(bool square[SIDE * SIDE])
{
	int best = 0;
	double max = -1;
	for (int shape = 0; shape < SHAPES; shape++) {
		static bool drawn[SIDE * SIDE];
		double both = 0, either = 0;
		draw(shape, drawn);
		for (int i = 0; i < SIDE * SIDE; i++) {
			both += square[i] && drawn[i];
			either += square[i] || drawn[i];
		}
		best = both / either > max ? shape : best;
		max = both / either > max ? both / either : max;
	}
	return best;
}

/* The number of the colour or shape that a word is; -1: none. */
static int colour_of(const char *word)
{
	for (int i = 0; i < COLOURS; i++)
		if (strcmp(word, colours[i].name) == 0)
			return i;
	return -1;
}

/* Whether an object is there; where. */
static bool shows(const struct image *p, int colour, const char *shape, struct place *middle, char *why)
{
	static bool square[SIDE * SIDE];
	struct mask part;
	const int size = largest_part(p, colour, &part);
	bool shown = size > 0.012 * p->width * p->height;
	if (!shown) {
		sprintf(why, "nothing is %s", colours[colour].name);
	} else {
		normalise(&part, square, middle);
		const int found = shape_of(square);
		shown = strcmp(shapes[found].name, shape) == 0;
		sprintf(why, "the %s %s is a %s", colours[colour].name, shape, shapes[found].name);
	}
	free(part.in);
	return shown;
}

static bool is_placed(const char *prompt, const struct place middle[2])
{
	static const struct {
		const char *words;
		int x, y;
	} relations[] = {
	    {" to the left of ", -1, 0}, {" to the right of ", 1, 0}, {" above ", 0, -1}, {" below ", 0, 1}};
	for (int i = 0; i < 4; i++)
		if (strstr(prompt, relations[i].words))
			return (middle[0].x - middle[1].x) * relations[i].x +
				   (middle[0].y - middle[1].y) * relations[i].y >
			       6;
	return true;
}

/* Each "COLOUR SHAPE" of the prompt, and "COLOUR background". */
static bool shows_all(const struct image *p, const char *prompt, char *why)
{
	char words[256], *rest = words;
	struct place middle[2] = {{0, 0}, {0, 0}};
	int objects = 0;
	bool grounded = false;
	snprintf(words, sizeof(words), "%s", prompt);
	for (int colour = -1; rest;) {
		const char *word = strsep(&rest, " ");
		if (colour >= 0 && strcmp(word, "background") == 0) {
			sprintf(why, "the background is %s", colours[background_of(p)].name);
			grounded = background_of(p) == colour;
			if (!grounded)
				return false;
		} else if (colour >= 0 &&
			   (objects == 2 || !shows(p, colour, word, &middle[objects++], why))) {
			return false;
		}
		colour = colour_of(word);
	}
	sprintf(why, "background or objects are not named, or not placed so");
	return grounded && objects > 0 && (objects == 1 || is_placed(prompt, middle));
}

static bool check(const char *path)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct image image = {0, 0, NULL};
	char *parameters = NULL, why[256] = "";
	bool shown = false;
	if (read_image(path, &image, &error) == 0 &&
	    smalti_png_read_text(path, "parameters", &parameters, &error) == 0 && parameters) {
		cJSON *request = cJSON_Parse(parameters);
		const char *prompt = cJSON_GetStringValue(cJSON_GetObjectItem(request, "prompt"));
		shown = prompt && shows_all(&image, prompt, why);
		printf("%s: %s: %s\n", path, prompt ? prompt : "no prompt", shown ? "shown" : why);
		cJSON_Delete(request);
	} else {
		printf("%s: no image of ours: %s\n", path, error.message);
	}
	free(parameters);
	free(image.colour);
	return shown;
}

int main(int argc, char **argv)
{
	int missing = argc < 2;
	for (int i = 1; i < argc; i++)
		missing += !check(argv[i]);
	return missing ? 1 : 0;
}
