/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of parameters against the reference (tests/data/train/README.md), and CAME against its definition
 * in double.
 */
#include "base/json.h"
#include "bench/fill.h"
#include "harness.h"
#include "kernels/optimizers.h"
#include "train/schedule.h"

#include <math.h>

enum { MOST = 64 };

static cJSON *part(cJSON *file, const char *name)
{
	cJSON *found = cJSON_GetObjectItem(file, name);
	CHECK(found != NULL, name);
	return found;
}

static double number(const cJSON *object, const char *name)
{
	const cJSON *found = cJSON_GetObjectItem(object, name);
	CHECK(cJSON_IsNumber(found), name);
	return found ? found->valuedouble : NAN;
}

/* Schedules */

static void schedules_are_those_of_the_reference(void)
{
	static const char *const names[] = {"constant", "cosine"};
	cJSON *file = smalti_json_read(test_data("train/draws.json"), 1 << 20, NULL);
	for (int kind = 0; kind < 2; kind++) {
		cJSON *row = part(part(file, "schedule"), names[kind]);
		const struct smalti_rate_schedule schedule = {(enum smalti_schedule_kind)kind,
							      (int64_t)number(row, "warmup"),
							      (int64_t)number(row, "total")};
		const cJSON *factor;
		int64_t step = 0;
		cJSON_ArrayForEach (factor, part(row, "factor"))
			CHECK(fabs(smalti_schedule_factor(&schedule, step++) - factor->valuedouble) <= 1e-12,
			      names[kind]);
	}
	cJSON_Delete(file);
}

static void numbers_of_a_step(void)
{
	const struct {
		double found, expected;
	} cases[] = {
	    {smalti_base_rate(2e-5, SMALTI_RATE_GIVEN, 64), 2e-5},
	    {smalti_base_rate(2e-5, SMALTI_RATE_SQRT, 64), 1e-5},
	    {smalti_base_rate(2e-5, SMALTI_RATE_LINEAR, 64), 5e-6},
	    {smalti_average_decay(0.9999, 1), 0},
	    {smalti_average_decay(0.9999, 2), 2. / 11},
	    {smalti_average_decay(0.5, 1000), 0.5},
	    {smalti_clip_factor(2, 0), 1},
	    {smalti_clip_factor(0.5, 1), 1},
	    {smalti_clip_factor(2, 1), 1 / (2 + 1e-6)},
	};
	for (int i = 0; i < COUNT(cases); i++)
		CU_ASSERT_DOUBLE_EQUAL(cases[i].found, cases[i].expected, 1e-15);
}

/* AdamW and the loss scale */

struct tensor {
	const char *name;
	int64_t count;
	float value[MOST], gradient[MOST], mean[MOST], square[MOST];
};

static int64_t count_of(const cJSON *shape)
{
	const cJSON *extent;
	int64_t count = 1;
	cJSON_ArrayForEach (extent, shape)
		count *= extent->valueint;
	return count;
}

/* f32 of sin(0.7 i + 0.3 step + k), times the scale. */
static void fill_gradient(struct tensor *tensor, int k, int step, double scale)
{
	for (int64_t i = 0; i < tensor->count; i++)
		tensor->gradient[i] = (float)(scale * (double)(float)sin(0.7 * (double)i + 0.3 * step + k));
}

static double square_norm(const struct tensor *tensors, int count, double scale)
{
	double sum = 0;
	for (int k = 0; k < count; k++)
		sum += smalti_square_sum(tensors[k].count, 1 / scale, tensors[k].gradient);
	return sum;
}

static void check_values(const struct tensor *tensors, int count, cJSON *expected)
{
	for (int k = 0; k < count; k++) {
		const cJSON *values = part(expected, tensors[k].name);
		double max = 0;
		for (int i = 0; i < cJSON_GetArraySize(values); i++)
			max =
			    fmax(max, fabs(tensors[k].value[i] - cJSON_GetArrayItem(values, i)->valuedouble));
		CHECK(cJSON_GetArraySize(values) > 0 && max <= 1e-6, tensors[k].name);
	}
}

static void plant(struct tensor *tensors, int count, cJSON *bad)
{
	const char *value = part(bad, "value")->valuestring, *name = part(bad, "tensor")->valuestring;
	for (int k = 0; k < count; k++)
		if (strcmp(tensors[k].name, name) == 0)
			tensors[k].gradient[(int)number(bad, "element")] = strtof(value, NULL);
}

static void fill_value(struct tensor *tensor, int k, const cJSON *shape)
{
	struct smalti_tensor_view view = {.name = tensor->name};
	const cJSON *extent;
	cJSON_ArrayForEach (extent, shape)
		view.shape[view.rank++] = extent->valueint;
	const struct smalti_fill fill = smalti_fill_of(&view, k);
	smalti_fill(&fill, 0, tensor->count, tensor->value);
}

static void bad_steps_change_the_scale_alone(void)
{
	static struct tensor tensors[3];
	cJSON *file = smalti_json_read(test_data("train/scaler.json"), 1 << 20, NULL);
	cJSON *rule = part(file, "rule"), *betas = part(rule, "betas"), *row;
	const cJSON *shape;
	int count = 0;
	cJSON_ArrayForEach (shape, part(rule, "shapes")) {
		tensors[count].name = shape->string;
		tensors[count].count = count_of(shape);
		fill_value(&tensors[count], count, shape);
		count++;
	}
	CHECK(count == 3, "shapes");
	struct smalti_loss_scale scale = {.scale = number(rule, "init_scale")};
	const struct smalti_loss_scale_options options = {.growth = number(rule, "growth_factor"),
							  .backoff = number(rule, "backoff_factor"),
							  .interval =
							      (int64_t)number(rule, "growth_interval")};
	struct smalti_adamw adamw = {
	    .lr = number(rule, "lr"),
	    .betas = {cJSON_GetArrayItem(betas, 0)->valuedouble, cJSON_GetArrayItem(betas, 1)->valuedouble},
	    .epsilon = number(rule, "eps"),
	    .weight_decay = number(rule, "weight_decay")};
	cJSON_ArrayForEach (row, part(rule, "rows")) {
		cJSON *bad = part(row, "bad");
		CHECK(scale.scale == number(row, "scale"), "scale");
		for (int k = 0; k < count; k++)
			fill_gradient(&tensors[k], k, (int)number(row, "step"), scale.scale);
		if (!cJSON_IsNull(bad))
			plant(tensors, count, bad);
		const double norm = sqrt(square_norm(tensors, count, scale.scale));
		CHECK(isfinite(norm) == cJSON_IsNull(bad), "finite");
		if (isfinite(norm)) {
			CU_ASSERT_DOUBLE_EQUAL(norm, number(row, "grad_norm"), 1e-6);
			adamw.step++;
			adamw.gradient_scale = smalti_clip_factor(norm, number(rule, "clip")) / scale.scale;
			for (int k = 0; k < count; k++)
				smalti_adamw(&adamw, tensors[k].count, tensors[k].gradient, tensors[k].value,
					     tensors[k].mean, tensors[k].square);
		}
		CHECK(smalti_loss_scale_update(&scale, &options, isfinite(norm), NULL) == 0, "goes on");
		CHECK(scale.scale == number(row, "scale_after") &&
			  scale.good == (int64_t)number(row, "good_after"),
		      "scale after");
		CHECK(adamw.step == (int64_t)number(row, "optimizer_steps"), "steps that were made");
		check_values(tensors, count, part(row, "parameters"));
	}
	cJSON_Delete(file);
}

static void no_scale_helps_for_ever(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_loss_scale_options never = {.growth = 2, .backoff = 1, .interval = 1},
					       halved = {.growth = 2, .backoff = 0.5, .interval = 1};
	struct smalti_loss_scale scale = {.scale = 1};
	int steps = 0;
	while (smalti_loss_scale_update(&scale, &never, false, &error) == 0)
		steps++;
	CHECK(steps == 49, "50 bad steps");
	FAILS(-1, &error, SMALTI_ECORRUPT, "bad steps", "50 steps", "bf16");
	scale = (struct smalti_loss_scale){.scale = 1};
	for (steps = 0; smalti_loss_scale_update(&scale, &halved, false, NULL) == 0;)
		steps++;
	CHECK(steps == 14, "2^-14 is the last");
	scale = (struct smalti_loss_scale){.scale = 0x1p1023};
	CHECK(smalti_loss_scale_update(&scale, &halved, true, NULL) == 0 && scale.scale == 0x1p1023,
	      "finite");
}

/* CAME by its definition, of one tensor [count] or [batch, rows, columns], in double. */

struct plain {
	double value[MOST], mean[MOST], rows[2][MOST], columns[2][MOST], squares[MOST];
};

static void factor(const struct smalti_came_shape *s, double beta, const double *squares, double *rows,
		   double *columns, double *inverse)
{
	for (int64_t b = 0; b < s->batch; b++) {
		double mean = 0;
		for (int64_t r = 0; r < s->rows; r++) {
			double sum = 0;
			for (int64_t c = 0; c < s->columns; c++)
				sum += squares[(b * s->rows + r) * s->columns + c];
			double *row = &rows[b * s->rows + r];
			*row = beta * *row + (1 - beta) * sum / (double)s->columns;
			mean += *row / (double)s->rows;
		}
		for (int64_t c = 0; c < s->columns; c++) {
			double sum = 0;
			for (int64_t r = 0; r < s->rows; r++)
				sum += squares[(b * s->rows + r) * s->columns + c];
			double *column = &columns[b * s->columns + c];
			*column = beta * *column + (1 - beta) * sum / (double)s->rows;
			for (int64_t r = 0; r < s->rows; r++)
				inverse[(b * s->rows + r) * s->columns + c] =
				    1 / sqrt(rows[b * s->rows + r] / mean) / sqrt(*column);
		}
	}
}

static void plain_came(const struct smalti_came *came, const struct smalti_came_shape *s,
		       const float *gradient, struct plain *p)
{
	const int64_t count = s->batch * s->rows * s->columns;
	double squares[MOST], inverse[MOST], step[MOST], sum = 0;
	for (int64_t i = 0; i < count; i++)
		squares[i] = pow(came->gradient_scale * (double)gradient[i], 2) + came->epsilons[0];
	if (s->factored)
		factor(s, came->betas[1], squares, p->rows[0], p->columns[0], inverse);
	for (int64_t i = 0; i < count; i++) {
		p->squares[i] = came->betas[1] * p->squares[i] + (1 - came->betas[1]) * squares[i];
		const double root = s->factored ? inverse[i] : 1 / sqrt(p->squares[i]);
		step[i] = came->gradient_scale * (double)gradient[i] * root;
		sum += step[i] * step[i];
	}
	const double clip = fmax(1, sqrt(sum / (double)count) / came->limit);
	for (int64_t i = 0; i < count; i++) {
		p->mean[i] = came->betas[0] * p->mean[i] + (1 - came->betas[0]) * step[i] / clip;
		squares[i] = pow(step[i] / clip - p->mean[i], 2) + came->epsilons[1];
		inverse[i] = 1;
	}
	if (s->factored)
		factor(s, came->betas[2], squares, p->rows[1], p->columns[1], inverse);
	for (int64_t i = 0; i < count; i++)
		p->value[i] -= came->lr * (came->weight_decay * p->value[i] + p->mean[i] * inverse[i]);
}

static void came_is_its_definition(void)
{
	static const struct {
		const char *what;
		struct smalti_came_shape shape;
	} cases[] = {
	    {"vector", {.parts = 1, .batch = 1, .rows = 13, .columns = 1}},
	    {"three vectors", {.parts = 3, .batch = 1, .rows = 5, .columns = 1}},
	    {"matrix", {.parts = 1, .factored = true, .batch = 1, .rows = 5, .columns = 7}},
	    {"wide matrix", {.parts = 1, .factored = true, .batch = 1, .rows = 2, .columns = 31}},
	    {"three matrices", {.parts = 3, .factored = true, .batch = 1, .rows = 2, .columns = 5}},
	    {"two matrices", {.parts = 2, .factored = true, .batch = 1, .rows = 3, .columns = 7}},
	    {"kernel", {.parts = 1, .factored = true, .batch = 6, .rows = 2, .columns = 2}},
	};
	const struct smalti_came came = {.lr = 0.01,
					 .betas = {0.9, 0.99, 0.999},
					 .epsilons = {1e-30, 1e-16},
					 .limit = 1,
					 .weight_decay = 0.1,
					 .gradient_scale = 0.25};
	for (int k = 0; k < COUNT(cases); k++) {
		const struct smalti_came_shape shape = cases[k].shape;
		const int64_t count = shape.batch * shape.rows * shape.columns, all = shape.parts * count;
		/* parts behind each other are a tensor with as many times the rows */
		struct smalti_came_shape whole = shape;
		whole.parts = 1;
		whole.rows *= shape.parts;
		float gradient[MOST], value[MOST], mean[MOST] = {0}, factors[2 * MOST] = {0};
		const float *gradients[3];
		float *values[3], *means[3];
		struct plain plain = {0};
		uint64_t state = (uint64_t)k;
		CHECK(all <= MOST && smalti_came_factors(&shape) <= COUNT(factors), "room");
		for (int64_t i = 0; i < all; i++)
			plain.value[i] = value[i] = test_random(&state);
		for (int i = 0; i < shape.parts; i++) {
			gradients[i] = gradient + i * count;
			values[i] = value + i * count;
			means[i] = mean + i * count;
		}
		for (int step = 0; step < 4; step++) {
			for (int64_t i = 0; i < all; i++)
				gradient[i] = test_random(&state) * (step == 2 ? 100.f : 1.f);
			CHECK(smalti_came(&came, &shape, gradients, values, means, factors, NULL) == 0,
			      cases[k].what);
			plain_came(&came, &whole, gradient, &plain);
		}
		double max = 0;
		for (int64_t i = 0; i < all; i++)
			max = fmax(max, fabs(value[i] - plain.value[i]));
		CHECK(max <= 1e-6, cases[k].what);
	}
}

static void averages_and_squares(void)
{
	enum { LONG = 10000 };
	static float x[LONG], average[LONG];
	uint64_t state = 3;
	double sum = 0;
	for (int i = 0; i < LONG; i++) {
		x[i] = test_random(&state);
		sum += (double)x[i] * (double)x[i];
		average[i] = 2;
	}
	CU_ASSERT_DOUBLE_EQUAL(smalti_square_sum(LONG, 0.5, x), sum / 4, 1e-9);
	smalti_average(LONG, 0.75, x, average);
	for (int i = 0; i < LONG; i++)
		CHECK(fabsf(average[i] - (1.5f + 0.25f * x[i])) <= 1e-6f, "average");
	x[5000] = NAN;
	CHECK(isnan(smalti_square_sum(LONG, 1, x)), "NaN");
	x[5000] = 1e38f;
	CHECK(isfinite(smalti_square_sum(LONG, 1, x)), "squares beyond f32");
}

static const struct test tests[] = {
    {"schedules are those of the reference", schedules_are_those_of_the_reference},
    {"numbers of a step", numbers_of_a_step},
    {"bad steps change the scale alone", bad_steps_change_the_scale_alone},
    {"no scale helps for ever", no_scale_helps_for_ever},
    {"CAME is its definition", came_is_its_definition},
    {"averages and squares", averages_and_squares},
};

TEST_MAIN("optimizers", tests)
