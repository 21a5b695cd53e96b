/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention by a device's kernel that takes a tile of keys at a time (smalti_device_attend_tile), against
 * sums in f64: of awkward lengths, in one tile and in several, with the state that goes from one to the next.
 *
 * With SMALTI_TEST_SPEED set the program times it instead, on shapes of real models, beside cuDNN and the
 * kernel for all devices. */
#include "base/clock.h"
#include "base/dtype.h"
#include "codelets/device_parts.h"
#include "device_session.h"
#include "kernels/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <starpu.h>

static const int64_t head_dims[] = {64, 72, 80, 96, 128};
static const enum smalti_dtype dtypes[] = {SMALTI_F16, SMALTI_BF16};

enum { MAX_TILES = 3, BEHIND = 64 /* elements behind y, which nobody may change */ };

struct shape {
	int64_t queries, keys, heads, head_dim;
	enum smalti_dtype dtype;
	int tiles;
};

/* What computes: the kernel for tiles; what operations call, with all tiles at once and no buffer for the
 * state; the kernel for tiles in turns with the one for all devices; cuDNN; or the kernel for all devices. */
enum way { TILES, BLOCKS, MIXED, CUDNN, GENERAL, WAYS };
static const char *const ways[WAYS] = {"tiles", "blocks", "mixed", "cuDNN", "general"};

/* One problem: in f32 what the device has in the dtype. Of a token of q there are `width` elements; of keys
 * `width` and then as many of values. */
struct problem {
	struct shape shape;
	int64_t width, begins[MAX_TILES + 1]; /* the first key of each tile */
	float scale, *q, *k, *v, *y, *lse;
	const struct smalti_device_memory *on_q, *on_kv[MAX_TILES], *on_state, *on_y, *on_lse;
	struct smalti_device *device;
	enum way way;
	struct smalti_error error;
};

static void *room(int64_t bytes)
{
	void *memory = malloc((size_t)bytes + 1);
	if (!memory)
		abort();
	return memory;
}

/* Scores that are spread: some keys weigh much, and most of them little. */
static float *random_tokens(const struct problem *p, int64_t tokens, float spread, uint64_t *state)
{
	float *values = room(tokens * p->width * (int64_t)sizeof(float));
	for (int64_t i = 0; i < tokens * p->width; i++)
		values[i] = smalti_round(p->shape.dtype, spread * test_random(state));
	return values;
}

static struct problem new_problem(const struct shape *shape, struct smalti_device *device)
{
	struct problem p = {.shape = *shape, .device = device, .error = SMALTI_NO_ERROR};
	uint64_t state = 7;
	p.width = shape->heads * shape->head_dim;
	p.scale = 1 / sqrtf((float)shape->head_dim);
	p.q = random_tokens(&p, shape->queries, 3, &state);
	p.k = random_tokens(&p, shape->keys, 3, &state);
	p.v = random_tokens(&p, shape->keys, 1, &state);
	p.y = room(shape->queries * p.width * (int64_t)sizeof(float));
	p.lse = room(shape->queries * shape->heads * (int64_t)sizeof(float));
	for (int i = 0; i <= shape->tiles; i++) /* the first ones are smaller */
		p.begins[i] = shape->keys * i * (i + 1) / (shape->tiles * (shape->tiles + 1));
	return p;
}

static void free_problem(struct problem *p)
{
	free(p->q);
	free(p->k);
	free(p->v);
	free(p->y);
	free(p->lse);
}

static void copy(const struct smalti_device_memory *memory, void *host, int64_t bytes, bool to_device)
{
	const uintptr_t on = (uintptr_t)memory->memory, at = (uintptr_t)host;
	const unsigned node = starpu_worker_get_local_memory_node();
	if (to_device)
		starpu_interface_copy(at, 0, STARPU_MAIN_RAM, on, 0, node, (size_t)bytes, NULL);
	else
		starpu_interface_copy(on, 0, node, at, 0, STARPU_MAIN_RAM, (size_t)bytes, NULL);
}

static const struct smalti_device_memory *upload(struct problem *p, const void *host, int64_t bytes)
{
	const struct smalti_device_memory *memory = smalti_device_take(p->device, bytes, &p->error);
	if (memory)
		copy(memory, (void *)(uintptr_t)host, bytes, true);
	return memory;
}

/* Rows of left, and of right behind each; NULL: none. */
static const struct smalti_device_memory *upload_rows(struct problem *p, const float *left,
						      const float *right, int64_t rows)
{
	const int64_t columns = p->width * (right ? 2 : 1);
	uint16_t *narrow = room(rows * columns * 2);
	for (int64_t row = 0; row < rows; row++) {
		smalti_narrow(p->shape.dtype, left + row * p->width, p->width, narrow + row * columns);
		if (right)
			smalti_narrow(p->shape.dtype, right + row * p->width, p->width,
				      narrow + row * columns + p->width);
	}
	const struct smalti_device_memory *memory = upload(p, narrow, rows * columns * 2);
	free(narrow);
	return memory;
}

/* Fills what the device writes with NaN. */
static const struct smalti_device_memory *upload_blank(struct problem *p, int64_t bytes)
{
	void *blank = room(bytes);
	memset(blank, 0xff, (size_t)bytes);
	const struct smalti_device_memory *memory = upload(p, blank, bytes);
	free(blank);
	return memory;
}

static bool upload_all(struct problem *p)
{
	const struct shape *s = &p->shape;
	bool all =
	    (p->on_q = upload_rows(p, p->q, NULL, s->queries)) &&
	    (p->on_y = upload_blank(p, (s->queries * p->width + BEHIND) * 2)) &&
	    (p->on_lse = upload_blank(p, s->queries * s->heads * 4)) &&
	    (p->on_state = upload_blank(p, smalti_attention_state(s->queries, s->heads, s->head_dim) * 4));
	for (int i = 0; all && i < s->tiles; i++) {
		const int64_t first = p->begins[i] * p->width, keys = p->begins[i + 1] - p->begins[i];
		all = (p->on_kv[i] = upload_rows(p, p->k + first, p->v + first, keys));
	}
	return all;
}

static void give(struct problem *p, const struct smalti_device_memory *memory)
{
	if (memory)
		smalti_device_give(p->device, memory);
}

static void give_all(struct problem *p)
{
	for (int i = 0; i < p->shape.tiles; i++)
		give(p, p->on_kv[i]);
	give(p, p->on_q);
	give(p, p->on_y);
	give(p, p->on_lse);
	give(p, p->on_state);
}

static struct smalti_device_attend_tile tile_of(const struct problem *p, int i)
{
	const struct shape *s = &p->shape;
	return (struct smalti_device_attend_tile){
	    .queries = s->queries,
	    .keys = p->begins[i + 1] - p->begins[i],
	    .heads = s->heads,
	    .head_dim = s->head_dim,
	    .q_stride = p->width,
	    .kv_stride = 2 * p->width,
	    .v_first = p->width,
	    .dtype = s->dtype,
	    .scale = p->scale,
	    .first = i == 0,
	    .last = i == s->tiles - 1,
	    .q = p->on_q,
	    .kv = p->on_kv[i],
	    .state = p->on_state,
	    .y = p->on_y,
	    .lse = p->on_lse,
	};
}

/* What the kernel for all devices takes, with the keys of `tiles` tiles from `first` on. */
static struct attend_arguments arguments_of(const struct problem *p, int first, int tiles)
{
	const struct shape *s = &p->shape;
	struct attend_arguments a = {
	    .queries = s->queries,
	    .heads = s->heads,
	    .head_dim = s->head_dim,
	    .columns = s->head_dim,
	    .q_stride = p->width,
	    .kv_stride = 2 * p->width,
	    .v_first = p->width,
	    .parts = 1,
	    .dtype = s->dtype,
	    .y_dtype = s->dtype,
	    .scale = p->scale,
	    .first = first == 0,
	    .last = first + tiles == s->tiles,
	};
	for (int i = 0; i < tiles; i++)
		a.keys[i] = p->begins[first + i + 1] - p->begins[first + i];
	return a;
}

static int attend_generally(struct problem *p, int tile, struct smalti_error *error)
{
	static const char *const kernels[][2] = {[SMALTI_F16] = {"attend_f16_wide", "attend_f16_narrow"},
						 [SMALTI_BF16] = {"attend_bf16_wide", "attend_bf16_narrow"}};
	const struct shape *s = &p->shape;
	const struct attend_arguments a = arguments_of(p, tile, 1);
	const struct smalti_attend_buffers buffers = {
	    .q = p->on_q, .kv = {p->on_kv[tile]}, .state = p->on_state, .y = p->on_y, .lse = p->on_lse};
	const struct smalti_launch launch = {kernels[s->dtype][s->head_dim <= SMALTI_ATTEND_NARROW],
					     (s->queries + SMALTI_TENSOR_QUERIES - 1) /
						 SMALTI_TENSOR_QUERIES * s->heads,
					     SMALTI_ATTEND_THREADS};
	return smalti_device_launch(p->device, &launch, (const struct smalti_device_memory *const *)&buffers,
				    (int)(sizeof(buffers) / sizeof(buffers.q)), &a, sizeof(a), error);
}

static int attend_blocks(struct problem *p, struct smalti_error *error)
{
	const struct attend_arguments a = arguments_of(p, 0, p->shape.tiles);
	struct smalti_attend_buffers buffers = {.q = p->on_q, .y = p->on_y, .lse = p->on_lse};
	memcpy(buffers.kv, p->on_kv, sizeof(p->on_kv));
	return smalti_device_attend(p->device, &a, &buffers, error);
}

static struct smalti_device_sdpa sdpa_of(const struct problem *p)
{
	const struct shape *s = &p->shape;
	return (struct smalti_device_sdpa){s->queries, s->keys, s->heads, s->head_dim, s->dtype, false};
}

/* The whole of it, once. */
static int attend(void *user, struct smalti_error *error)
{
	struct problem *p = user;
	const struct smalti_device_sdpa sdpa = sdpa_of(p);
	if (p->way == CUDNN)
		return smalti_device_sdpa(p->device, &sdpa, p->on_q, p->on_kv[0], NULL, p->scale, p->on_y,
					  error);
	if (p->way == BLOCKS)
		return attend_blocks(p, error);
	for (int i = 0; i < p->shape.tiles; i++) {
		const struct smalti_device_attend_tile tile = tile_of(p, i);
		if ((p->way == GENERAL || (p->way == MIXED && i % 2 == 1)
			 ? attend_generally(p, i, error)
			 : smalti_device_attend_tile(p->device, &tile, error)) < 0)
			return -1;
	}
	return 0;
}

static bool can(struct problem *p)
{
	const struct smalti_device_sdpa sdpa = sdpa_of(p);
	const struct smalti_device_attend_tile tile = tile_of(p, 0);
	if (p->way == CUDNN)
		return p->shape.tiles == 1 && smalti_device_has_sdpa(p->device, &sdpa);
	return p->way == GENERAL || smalti_device_attends_tile(p->device, &tile);
}

/* Has y and lse on the host; whether what is behind y was left alone. */
static bool download(struct problem *p)
{
	const struct shape *s = &p->shape;
	const int64_t count = s->queries * p->width;
	uint16_t *narrow = room((count + BEHIND) * 2);
	bool alone = true;
	copy(p->on_y, narrow, (count + BEHIND) * 2, false);
	copy(p->on_lse, p->lse, s->queries * s->heads * 4, false);
	smalti_widen(s->dtype, narrow, count, p->y);
	for (int i = 0; i < BEHIND; i++)
		alone = alone && narrow[count + i] == 0xffff;
	free(narrow);
	return alone;
}

/* Squares of what is off, and of what was expected; and how far the logarithm is off at most. */
struct errors {
	double off, of, lse;
};

static void compare_row(const struct problem *p, int64_t query, int64_t head, double *scores,
			struct errors *errors)
{
	const struct shape *s = &p->shape;
	const float *q = p->q + query * p->width + head * s->head_dim;
	double largest = -INFINITY, sum = 0, values[128] = {0};
	for (int64_t key = 0; key < s->keys; key++) {
		const float *k = p->k + key * p->width + head * s->head_dim;
		double score = 0;
		for (int64_t i = 0; i < s->head_dim; i++)
			score += (double)q[i] * (double)k[i];
		scores[key] = score * (double)p->scale;
		largest = fmax(largest, scores[key]);
	}
	for (int64_t key = 0; key < s->keys; key++) {
		const float *v = p->v + key * p->width + head * s->head_dim;
		const double weight = exp(scores[key] - largest);
		sum += weight;
		for (int64_t i = 0; i < s->head_dim; i++)
			values[i] += weight * (double)v[i];
	}
	for (int64_t i = 0; i < s->head_dim; i++) {
		const double is = values[i] / sum;
		const double off = (double)p->y[query * p->width + head * s->head_dim + i] - is;
		errors->off += off * off;
		errors->of += is * is;
	}
	const double lse = (largest + log(sum)) * M_LOG2E;
	const double off = fabs((double)p->lse[head * s->queries + query] - lse);
	errors->lse = off <= errors->lse ? errors->lse : off; /* or NaN */
}

/* Of large problems some queries: a row and a column of each kind in a tile of 128. */
static struct errors compare(const struct problem *p, int64_t max)
{
	const struct shape *s = &p->shape;
	const int64_t step = s->queries <= max ? 1 : (s->queries / max) | 1;
	struct errors errors = {0, 0, 0};
	double *scores = room(s->keys * (int64_t)sizeof(double));
	for (int64_t query = 0; query < s->queries; query += step)
		for (int64_t head = 0; head < s->heads; head++)
			compare_row(p, query, head, scores, &errors);
	for (int64_t head = 0; head < s->heads; head++)
		compare_row(p, s->queries - 1, head, scores, &errors);
	free(scores);
	return errors;
}

static const char *name_of(const struct problem *p)
{
	static char name[160];
	const struct shape *s = &p->shape;
	snprintf(name, sizeof(name), "%lld queries, %lld keys in %d tiles, %lld heads of %lld, %s, %s",
		 (long long)s->queries, (long long)s->keys, s->tiles, (long long)s->heads,
		 (long long)s->head_dim, smalti_dtype_name(s->dtype), ways[p->way]);
	return name;
}

struct trials {
	struct smalti_device *device;
	void (*run)(struct trials *trials);
	int count;
	bool skipped;
	double worst[SMALTI_BF16 + 1], worst_lse; /* relative errors: root mean squares of a shape */
};

static void try_shape(struct trials *trials, const struct shape *shape)
{
	struct problem p = new_problem(shape, trials->device);
	smalti_device_begin_step(p.device);
	if (shape->tiles > 1 && trials->count % 6 == 0)
		p.way = MIXED;
	else if (trials->count % 3 == 1)
		p.way = BLOCKS;
	bool good = upload_all(&p);
	CHECK(good, name_of(&p));
	if (good && !can(&p)) {
		trials->skipped = true;
	} else if (good) {
		good = attend(&p, &p.error) == 0 && smalti_device_finish(p.device, &p.error) == 0;
		SUCCEEDS(good ? 0 : -1, &p.error, name_of(&p));
		CHECK(download(&p), name_of(&p));
		const struct errors errors = compare(&p, 150);
		const double relative = sqrt(errors.off / errors.of);
		CHECK(relative < (shape->dtype == SMALTI_F16 ? 6e-4 : 4e-3), name_of(&p));
		CHECK(errors.lse < 1e-4, name_of(&p));
		if (!(relative < (shape->dtype == SMALTI_F16 ? 6e-4 : 4e-3) && errors.lse < 1e-4))
			printf("%s: %g, lse %g\n", name_of(&p), relative, errors.lse);
		trials->worst[shape->dtype] = fmax(trials->worst[shape->dtype], relative);
		trials->worst_lse = fmax(trials->worst_lse, errors.lse);
		trials->count++;
	}
	give_all(&p);
	free_problem(&p);
}

static const int64_t lengths[] = {1, 7, 63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 300, 384, 385, 513};

/* Every length of keys with another one of queries, in one to three tiles. */
static void try_all(struct trials *trials)
{
	int number = 0;
	for (int form = 0; !trials->skipped && form < COUNT(head_dims) * COUNT(dtypes); form++) {
		for (int i = 0; !trials->skipped && i < COUNT(lengths); i++, number++) {
			const struct shape shape = {lengths[(5 * i + 3 * form) % COUNT(lengths)],
						    lengths[i],
						    1 + number % 3,
						    head_dims[form % COUNT(head_dims)],
						    dtypes[form / COUNT(head_dims)],
						    lengths[i] < 63 ? 1 : 1 + number / 2 % MAX_TILES};
			try_shape(trials, &shape);
		}
		try_shape(trials, &(const struct shape){form % 2 ? 1100 : 1024, form % 3 ? 1024 : 1100, 1,
							head_dims[form % COUNT(head_dims)],
							dtypes[form / COUNT(head_dims)], 1 + form % 2});
	}
}

/* Checks that what is repeated as a graph has the same results. */
static void try_repeated(struct trials *trials)
{
	struct problem p =
	    new_problem(&(const struct shape){130, 300, 2, 72, SMALTI_BF16, 1}, trials->device);
	const struct smalti_device_work work = {attend, &p};
	const int64_t before = smalti_device_repeats(p.device);
	bool good = smalti_device_can_repeat(p.device) && upload_all(&p) && can(&p);
	trials->skipped = !good;
	for (int i = 0; good && i < 3; i++) {
		smalti_device_begin_step(p.device);
		good = smalti_device_repeat(p.device, 1, &work, &p.error) == 0;
		SUCCEEDS(good ? 0 : -1, &p.error, name_of(&p));
	}
	if (good && smalti_device_finish(p.device, &p.error) == 0 && download(&p)) {
		const struct errors errors = compare(&p, 150);
		CHECK(sqrt(errors.off / errors.of) < 4e-3, "repeated");
		CHECK(smalti_device_repeats(p.device) == before + 2, "two were repeated");
	}
	give_all(&p);
	free_problem(&p);
}

/* So often that the host's part is small: it gives the commands as a graph. */
enum { RUNS = 16 };

static int attend_often(void *user, struct smalti_error *error)
{
	int status = 0;
	for (int i = 0; status == 0 && i < RUNS; i++)
		status = attend(user, error);
	return status;
}

/* Times a way to compute a shape: the best of what 0.1 s have. */
static void time_way(struct problem *p, enum way way)
{
	static uint64_t key = 1;
	const struct shape *s = &p->shape;
	const double flops = 4. * (double)(s->queries * s->keys * s->heads * s->head_dim);
	const struct smalti_device_work work = {attend_often, p};
	double best = INFINITY;
	p->way = way;
	if (!can(p)) {
		printf("%-8s -\n", ways[way]);
		return;
	}
	key++;
	for (int i = 0; i < 3; i++)
		SUCCEEDS(smalti_device_repeat(p->device, key, &work, &p->error), &p->error, name_of(p));
	SUCCEEDS(smalti_device_finish(p->device, &p->error), &p->error, name_of(p));
	for (double end = smalti_wall_clock() + 0.1; smalti_wall_clock() < end;) {
		const double begin = smalti_wall_clock();
		smalti_device_repeat(p->device, key, &work, &p->error);
		smalti_device_finish(p->device, &p->error);
		best = fmin(best, (smalti_wall_clock() - begin) / RUNS);
	}
	const bool alone = download(p);
	const struct errors errors = compare(p, 4);
	printf("%-8s %9.1f us %7.1f TFLOP/s, error %.2e%s\n", ways[way], best * 1e6, flops / best * 1e-12,
	       sqrt(errors.off / errors.of), alone ? "" : ", and wrote behind y");
	fflush(stdout);
}

static void time_shape(struct smalti_device *device, const struct shape *shape)
{
	struct problem p = new_problem(shape, device);
	smalti_device_begin_step(device);
	printf("\n%lld queries, %lld keys, %lld heads of %lld, %s\n", (long long)shape->queries,
	       (long long)shape->keys, (long long)shape->heads, (long long)shape->head_dim,
	       smalti_dtype_name(shape->dtype));
	if (upload_all(&p)) {
		time_way(&p, TILES);
		time_way(&p, CUDNN);
		time_way(&p, GENERAL);
	}
	give_all(&p);
	free_problem(&p);
}

static void time_all(struct trials *trials)
{
	static const struct shape shapes[] = {
	    {1024, 1024, 16, 72, SMALTI_BF16, 1},   {4096, 4096, 16, 72, SMALTI_BF16, 1},
	    {16384, 16384, 16, 72, SMALTI_BF16, 1}, {4096, 300, 16, 72, SMALTI_BF16, 1},
	    {4096, 40, 16, 72, SMALTI_BF16, 1},     {1024, 40, 16, 72, SMALTI_BF16, 1},
	    {4096, 4096, 16, 64, SMALTI_BF16, 1},   {4096, 4096, 16, 128, SMALTI_BF16, 1},
	    {4096, 4096, 16, 72, SMALTI_F16, 1},
	};
	for (int i = 0; i < COUNT(shapes); i++)
		time_shape(trials->device, &shapes[i]);
}

/* Waits for the device: StarPU does not, behind a function. */
static void run_trials(void *user)
{
	struct trials *trials = user;
	struct smalti_error error = SMALTI_NO_ERROR;
	trials->run(trials);
	SUCCEEDS(smalti_device_finish(trials->device, &error), &error, "finish");
}

/* Runs a function on the first device's worker, as a task would be; false: there is no device. */
static bool on_device(const char *test, void (*run)(struct trials *), struct trials *trials)
{
	struct smalti_session *session = test_open_devices(test, "0", 1, NULL, NULL);
	unsigned worker = 0;
	if (!session)
		return false;
	while (!smalti_session_device(session, (int)worker))
		worker++;
	trials->device = smalti_session_device(session, (int)worker);
	trials->run = run;
	starpu_execute_on_specific_workers(run_trials, trials, 1, &worker, test);
	test_close_devices(session);
	return true;
}

static void tiles(void)
{
	struct trials trials = {.count = 0};
	if (!on_device("tiles of keys", try_all, &trials))
		return;
	if (trials.skipped) {
		printf("\n    skipped: the device has no kernel for tiles of keys");
		return;
	}
	printf("\n    %d shapes: errors to %.2g in f16 and %.2g in bf16, of the logarithm to %.2g",
	       trials.count, trials.worst[SMALTI_F16], trials.worst[SMALTI_BF16], trials.worst_lse);
	CHECK(trials.count == COUNT(head_dims) * COUNT(dtypes) * (COUNT(lengths) + 1), "all shapes");
}

static void repeated(void)
{
	struct trials trials = {.count = 0};
	on_device("repeated", try_repeated, &trials);
	if (trials.skipped)
		printf("\n    skipped: the device has no kernel for tiles of keys, or repeats nothing");
}

static void speed(void)
{
	struct trials trials = {.count = 0};
	if (getenv("SMALTI_TEST_SPEED"))
		on_device("speed", time_all, &trials);
}

static const struct test tests[] = {
    {"tiles of keys", tiles},
    {"repeated", repeated},
    {"speed", speed},
};

TEST_MAIN("attention by tiles", tests)
