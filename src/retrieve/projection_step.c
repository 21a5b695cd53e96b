/* SPDX-License-Identifier: Apache-2.0 */
#include "retrieve/projection_step.h"
#include "codelets/codelets.h"
#include "samplers/draws.h"

#include <math.h>

enum { BAND = 64, CAPTIONS = SMALTI_INDEX_CAPTIONS, IMAGES = SMALTI_INDEX_IMAGES };
static const double FIRST_TEMPERATURE = 2.6592600369327781; /* log(1 / 0.07), as CLIP's */
static const double MAX_TEMPERATURE = 4.6051701859880914;   /* log(100) */

static struct smalti_tile *floats(struct smalti_task_group *task_group, int64_t rows, int64_t columns)
{
	return smalti_tile_new(task_group, rows, columns * (int64_t)sizeof(float));
}

static void draw_parameter(struct smalti_projection_trainer *t, int index, uint64_t seed)
{
	struct smalti_parameter *parameter = &t->list[index];
	const bool is_weight = index != SMALTI_TEMPERATURE;
	parameter->value = smalti_parameter_tile(parameter, t->task_group);
	smalti_insert(initial_value, t->task_group, (.value = parameter->value), .count = parameter->count,
		      .seed = smalti_stream_seed(seed, SMALTI_STREAM_INITIAL, 0, (uint64_t)index),
		      .normal = is_weight, .offset = is_weight ? 0 : (float)FIRST_TEMPERATURE,
		      .factor = is_weight ? (float)(1 / sqrt((double)t->width[index])) : 0);
}

static void list_parameters(struct smalti_projection_trainer *t, uint64_t seed)
{
	static const char *const names[] = {"captions.weight", "images.weight", "temperature"};
	for (int i = 0; i < SMALTI_PROJECTION_TENSORS; i++) {
		t->list[i] = (struct smalti_parameter){
		    .name = names[i], .rank = 1, .shape = {1}, .count = 1, .tensor = i};
		if (i < SMALTI_KINDS) {
			t->list[i].rank = 2;
			t->list[i].shape[0] = t->dim;
			t->list[i].shape[1] = t->width[i];
			t->list[i].count = t->dim * t->width[i];
		}
		draw_parameter(t, i, seed);
	}
}

int smalti_projection_trainer_open(struct smalti_projection_trainer *t, struct smalti_session *session,
				   int64_t dim, const int64_t width[SMALTI_KINDS], double weight_decay,
				   uint64_t seed, struct smalti_error *error)
{
	*t = (struct smalti_projection_trainer){.dim = dim, .width = {width[CAPTIONS], width[IMAGES]}};
	t->task_group = smalti_task_group_new(session, "projections", 0, error);
	if (!t->task_group)
		return -1;
	list_parameters(t, seed);
	t->decayed = (struct smalti_parameters){.count = SMALTI_KINDS, .shards = 1, .list = t->list};
	t->other = (struct smalti_parameters){.count = 1, .shards = 1, .list = &t->list[SMALTI_TEMPERATURE]};
	for (int i = 0; i < 2; i++) {
		t->options[i] = (struct smalti_optimizer_options){.kind = SMALTI_OPTIMIZER_ADAMW,
								  .betas = {0.9, 0.999},
								  .epsilons = {1e-8},
								  .weight_decay = i == 0 ? weight_decay : 0};
		t->optimizer[i] = smalti_optimizer_new(t->task_group, i == 0 ? &t->decayed : &t->other,
						       &t->options[i], error);
		if (!t->optimizer[i])
			return -1;
	}
	return smalti_task_group_broken(t->task_group) ? smalti_task_group_status(t->task_group, error) : 0;
}

void smalti_projection_trainer_close(struct smalti_projection_trainer *t)
{
	for (int i = 0; i < 2; i++)
		smalti_optimizer_free(t->optimizer[i]);
	for (int i = 0; i < SMALTI_PROJECTION_TENSORS; i++)
		smalti_tile_release(t->list[i].value);
	smalti_task_group_free(t->task_group);
}

/* A batch that is computed. Tiles are of bands, if nothing else is said. */
struct step {
	struct smalti_projection_trainer *trainer;
	int64_t batch, bands;
	struct side {
		struct smalti_tile **x, **projected, **gradient, **weight_gradient, **parts;
		struct smalti_tile *unit, *lse; /* of the whole batch */
	} side[SMALTI_KINDS];
	struct smalti_tile **room; /* the memory of the lists above */
};

enum { LISTS = 5 };

static int open_step(struct step *s, struct smalti_error *error)
{
	s->room = smalti_calloc(s->bands * LISTS * SMALTI_KINDS, sizeof(struct smalti_tile *), error);
	if (!s->room)
		return -1;
	for (int kind = 0; kind < SMALTI_KINDS; kind++) {
		struct smalti_tile **at = s->room + kind * LISTS * s->bands;
		s->side[kind] = (struct side){.x = at,
					      .projected = at + s->bands,
					      .gradient = at + 2 * s->bands,
					      .weight_gradient = at + 3 * s->bands,
					      .parts = at + 4 * s->bands};
	}
	return 0;
}

static int64_t rows_of(const struct step *s, int64_t band)
{
	return smalti_min(BAND, s->batch - band * BAND);
}

/* Joins the bands end to end, with rows of `bytes`, and releases them. */
static struct smalti_tile *join_bands(const struct step *s, struct smalti_tile **bands, int64_t bytes)
{
	struct smalti_task_group *task_group = s->trainer->task_group;
	for (int64_t stride = 1; stride < s->bands; stride *= 2)
		for (int64_t i = 0; i + stride < s->bands; i += 2 * stride) {
			const int64_t middle = (i + stride) * BAND;
			const int64_t end = smalti_min(middle + stride * BAND, s->batch);
			struct smalti_tile *joined = smalti_tile_new(task_group, end - i * BAND, bytes);
			smalti_insert(concat, task_group,
				      (.first = bands[i], .second = bands[i + stride], .y = joined),
				      .first_bytes = (middle - i * BAND) * bytes,
				      .second_bytes = (end - middle) * bytes);
			smalti_tile_release(bands[i]);
			smalti_tile_release(bands[i + stride]);
			bands[i] = joined;
		}
	return bands[0];
}

/* Adds the bands to the first one, and releases the others. */
static struct smalti_tile *add_bands(const struct step *s, struct smalti_tile **bands, int64_t count)
{
	for (int64_t stride = 1; stride < s->bands; stride *= 2)
		for (int64_t i = 0; i + stride < s->bands; i += 2 * stride) {
			smalti_insert(add, s->trainer->task_group, (.x = bands[i + stride], .y = bands[i]),
				      .count = count);
			smalti_tile_release(bands[i + stride]);
		}
	return bands[0];
}

/* Projects a band's vectors of one kind; `rows` have both kinds. */
static int project_band(const struct step *s, int kind, int64_t band, const float *rows, float *room,
			struct smalti_error *error)
{
	const struct smalti_projection_trainer *t = s->trainer;
	const struct side *side = &s->side[kind];
	const int64_t width = t->width[kind], both = t->width[CAPTIONS] + t->width[IMAGES];
	const int64_t count = rows_of(s, band);
	const float *from = rows + band * BAND * both + (kind == IMAGES ? t->width[CAPTIONS] : 0);
	for (int64_t row = 0; row < count; row++)
		memcpy(room + row * width, from + row * both, (size_t)width * sizeof(*room));
	side->x[band] = smalti_tile_upload(t->task_group, count, width * (int64_t)sizeof(*room), room);
	side->projected[band] = floats(t->task_group, count, t->dim);
	smalti_insert(matmul_raw, t->task_group,
		      (.x = side->x[band], .part0 = t->list[kind].value, .y = side->projected[band]),
		      .matmul = {.rows = count,
				 .in = width,
				 .out = t->dim,
				 .x_dtype = SMALTI_F32,
				 .compute = SMALTI_F32,
				 .result = SMALTI_F32},
		      .dtype = {SMALTI_F32}, .part_out = {t->dim});
	return smalti_task_group_broken(t->task_group) ? smalti_task_group_status(t->task_group, error) : 0;
}

static int project(struct step *s, int kind, const float *rows, struct smalti_error *error)
{
	const struct smalti_projection_trainer *t = s->trainer;
	struct side *side = &s->side[kind];
	SCOPED(free) float *room = smalti_calloc(BAND * t->width[kind], sizeof(*room), error);
	if (!room)
		return -1;
	for (int64_t band = 0; band < s->bands; band++) {
		if (project_band(s, kind, band, rows, room, error) < 0)
			return -1;
		side->gradient[band] = floats(t->task_group, rows_of(s, band), t->dim);
		smalti_insert(unit_rows, t->task_group,
			      (.x = side->projected[band], .y = side->gradient[band]),
			      .rows = rows_of(s, band), .dim = t->dim);
	}
	side->unit = join_bands(s, side->gradient, t->dim * (int64_t)sizeof(float));
	return 0;
}

static void sum(struct step *s, int kind)
{
	const struct smalti_projection_trainer *t = s->trainer;
	struct side *side = &s->side[kind], *other = &s->side[!kind];
	for (int64_t band = 0; band < s->bands; band++) {
		side->parts[band] = smalti_tile_new(t->task_group, rows_of(s, band), sizeof(double));
		smalti_insert(contrast_sums, t->task_group,
			      (.x = side->unit, .y = other->unit,
			       .temperature = t->list[SMALTI_TEMPERATURE].value, .lse = side->parts[band]),
			      .rows = rows_of(s, band), .first = band * BAND, .batch = s->batch,
			      .dim = t->dim);
	}
	side->lse = join_bands(s, side->parts, sizeof(double));
}

static void differentiate_band(const struct step *s, int kind, int64_t band)
{
	const struct smalti_projection_trainer *t = s->trainer;
	const struct side *side = &s->side[kind], *other = &s->side[!kind];
	const int64_t rows = rows_of(s, band), width = t->width[kind];
	side->gradient[band] = floats(t->task_group, rows, t->dim);
	side->parts[band] = smalti_tile_new(t->task_group, 1, sizeof(struct smalti_contrast_parts));
	side->weight_gradient[band] = floats(t->task_group, t->dim, width);
	smalti_insert(contrast_gradient, t->task_group,
		      (.x = side->unit, .y = other->unit, .temperature = t->list[SMALTI_TEMPERATURE].value,
		       .lse = side->lse, .y_lse = other->lse, .gx = side->gradient[band],
		       .parts = side->parts[band]),
		      .rows = rows, .first = band * BAND, .batch = s->batch, .dim = t->dim);
	smalti_insert(unit_rows_backward, t->task_group,
		      (.x = side->projected[band], .g = side->gradient[band]), .rows = rows, .dim = t->dim);
	smalti_insert(
	    linear_weight, t->task_group,
	    (.gy = side->gradient[band], .x = side->x[band], .gweight = side->weight_gradient[band]),
	    .rows = rows, .in = width, .out = t->dim, .stride = t->dim, .dtype = SMALTI_F32,
	    .compute = SMALTI_F32);
	smalti_tile_release(side->gradient[band]);
	smalti_tile_release(side->projected[band]);
	smalti_tile_release(side->x[band]);
}

/* Delivers the sums of both sides from the graph; returns the gradient by the temperature. */
static struct smalti_tile *take_parts(const struct step *s, struct smalti_contrast_parts *parts)
{
	struct smalti_task_group *task_group = s->trainer->task_group;
	enum { FLOATS = sizeof(*parts) / sizeof(float) };
	struct smalti_tile *own = add_bands(s, s->side[CAPTIONS].parts, FLOATS);
	struct smalti_tile *other = add_bands(s, s->side[IMAGES].parts, FLOATS);
	struct smalti_tile *temperature = floats(task_group, 1, 1);
	smalti_insert(add, task_group, (.x = other, .y = own), .count = FLOATS);
	smalti_insert(slice_columns, task_group, (.x = own, .y = temperature), .rows = 1, .parts = 1,
		      .in = sizeof(*parts), .first = offsetof(struct smalti_contrast_parts, temperature),
		      .columns = sizeof(float));
	smalti_insert(deliver, task_group, (.x = own), .count = FLOATS, .sink = smalti_copy_floats,
		      .user = parts);
	smalti_tile_release(own);
	smalti_tile_release(other);
	return temperature;
}

static void update(const struct step *s, int64_t step, double rate, struct smalti_contrast_parts *parts)
{
	const struct smalti_projection_trainer *t = s->trainer;
	struct smalti_tile *gradients[SMALTI_PROJECTION_TENSORS];
	const struct smalti_update update = {.step = step, .rate = rate, .gradient_scale = 1};
	for (int kind = 0; kind < SMALTI_KINDS; kind++)
		gradients[kind] = add_bands(s, s->side[kind].weight_gradient, t->list[kind].count);
	gradients[SMALTI_TEMPERATURE] = take_parts(s, parts);
	smalti_optimizer_update(t->optimizer[0], t->task_group, gradients, &update);
	smalti_optimizer_update(t->optimizer[1], t->task_group, &gradients[SMALTI_TEMPERATURE], &update);
	smalti_insert(clamp, t->task_group, (.y = t->list[SMALTI_TEMPERATURE].value), .count = 1,
		      .max = (float)MAX_TEMPERATURE);
	for (int i = 0; i < SMALTI_PROJECTION_TENSORS; i++)
		smalti_tile_release(gradients[i]);
}

int smalti_projection_step(struct smalti_projection_trainer *trainer, const float *rows, int64_t batch,
			   int64_t number, double rate, struct smalti_contrast_parts *parts,
			   struct smalti_error *error)
{
	struct step step = {.trainer = trainer, .batch = batch, .bands = (batch + BAND - 1) / BAND};
	int status = open_step(&step, error);
	for (int kind = 0; kind < SMALTI_KINDS && status == 0; kind++)
		status = project(&step, kind, rows, error);
	if (status == 0) {
		for (int kind = 0; kind < SMALTI_KINDS; kind++)
			sum(&step, kind);
		for (int kind = 0; kind < SMALTI_KINDS; kind++)
			for (int64_t band = 0; band < step.bands; band++)
				differentiate_band(&step, kind, band);
		for (int kind = 0; kind < SMALTI_KINDS; kind++) {
			smalti_tile_release(step.side[kind].unit);
			smalti_tile_release(step.side[kind].lse);
		}
		update(&step, number, rate, parts);
	}
	free(step.room);
	return status;
}
