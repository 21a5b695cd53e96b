/* SPDX-License-Identifier: Apache-2.0
 *
 * Random plans over CPUs and devices together: whatever mix of workers, policy, distribution, tiling, grain
 * and limit of the devices' memory makes an image, it is a CPU's but for rounding, and no device holds more
 * than its limit.
 */
#include "base/json.h"
#include "driver.h"
#include "embedded.h"
#include "harness.h"
#include "judge.h"
#include "sanitized.h"

#include <math.h>

enum {
	PLANS = SANITIZED ? 8 : 50,
	LIMITED = SANITIZED ? 4 : 30,
	MAX_VALUES = 4 * 16 * 16,
	MEGABYTE = 1 << 20
};

struct plan {
	int64_t devices, cpus, limit; /* limit: megabytes of each device's memory; 0: none */
	int64_t policy, shares, strategy, grain, tile_tokens, tile_rows;
	bool on_devices;                 /* whatever can be */
	int64_t size, precision, guided; /* what a CPU's image depends on, too */
};

static const char *const policies[] = {"eager", "lws", "dmda", "dmdas", "ws", "prio", "random"};
static const char *const shares[] = {NULL, "0:1:1", "1:1:1", "3:1:0"};
static const char *const strategies[] = {NULL,     NULL,      "ring", "ulysses",
					 "tensor", "tensor3", "cfg2", "hybrid:cfg2.ulysses2.ring2"};
static const int64_t sizes[][2] = {{32, 32}, {96, 64}, {48, 80}};

static int64_t draw(uint64_t *state, int64_t count)
{
	enum { MOST = 8 };
	static const int64_t choices[MOST] = {0, 1, 2, 3, 4, 5, 6, 7};
	return judge_draw(state, choices, (int)count);
}

static struct plan random_plan(uint64_t *state)
{
	struct plan plan = {.devices = 1 + draw(state, 2), .cpus = 1 + draw(state, 2)};
	plan.limit = judge_draw(state, (const int64_t[]){0, 2, 4, 6, 16}, 5);
	plan.policy = draw(state, COUNT(policies));
	plan.shares = plan.devices == 2 ? draw(state, COUNT(shares)) : 0;
	plan.strategy = plan.devices == 2 ? draw(state, COUNT(strategies)) : 0;
	plan.grain = draw(state, SMALTI_GRAIN_PASS + 1);
	plan.tile_tokens = judge_draw(state, (const int64_t[]){0, 0, 5, 8, 24}, 5);
	plan.tile_rows = judge_draw(state, (const int64_t[]){0, 0, 1, 3}, 4);
	plan.size = draw(state, COUNT(sizes));
	plan.precision = draw(state, 2);
	plan.guided = draw(state, 2);
	return plan;
}

static const char *describe(const struct plan *p)
{
	static char text[320];
	snprintf(text, sizeof(text),
		 "%lldx%lld, %lld devices of %lld MB, %lld CPUs, %s, shares %s, strategy %s, grain %lld, "
		 "tiles %lld and %lld, "
		 "precision %lld, guided %lld",
		 (long long)sizes[p->size][0], (long long)sizes[p->size][1], (long long)p->devices,
		 (long long)p->limit, (long long)p->cpus, policies[p->policy],
		 shares[p->shares] ? shares[p->shares] : "none",
		 strategies[p->strategy] ? strategies[p->strategy] : "none", (long long)p->grain,
		 (long long)p->tile_tokens, (long long)p->tile_rows, (long long)p->precision,
		 (long long)p->guided);
	return text;
}

/* An image as far as latents go, and how many rows of pixels came. */
struct image {
	int64_t count, rows;
	float latents[MAX_VALUES];
	int status;
	char message[SMALTI_ERROR_LENGTH];
};

static int keep_latents(void *user, const int64_t shape[3], const float *values, struct smalti_error *error)
{
	struct image *image = user;
	(void)error;
	image->count = shape[0] * shape[1] * shape[2];
	memcpy(image->latents, values, (size_t)image->count * sizeof(*values));
	return 0;
}

static int count_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		      struct smalti_error *error)
{
	struct image *image = user;
	(void)first, (void)rgb, (void)error;
	image->rows += count;
	return 0;
}

static void keep_status(void *user, int status, const struct smalti_error *error)
{
	struct image *image = user;
	image->status = status;
	memcpy(image->message, error->message, sizeof(image->message));
}

static void make_image(struct smalti_session *session, const struct plan *plan, struct image *image)
{
	const struct smalti_image_callbacks callbacks = {
	    .user = image, .rows = count_rows, .latents = keep_latents, .done = keep_status};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_model_options options;
	struct smalti_request request;
	smalti_model_defaults(&options);
	smalti_request_defaults(&request);
	options.precision = plan->precision ? SMALTI_PRECISION_BF16 : SMALTI_PRECISION_F32;
	request.prompt = "a red star above a blue ring";
	request.width = sizes[plan->size][0];
	request.height = sizes[plan->size][1];
	request.steps = 2;
	request.guidance = plan->guided ? 4.5 : 1;
	request.tile_tokens = plan->tile_tokens;
	request.tile_rows = plan->tile_rows;
	request.grain = (enum smalti_grain)plan->grain;
	request.shares = shares[plan->shares];
	request.strategy = strategies[plan->strategy];
	struct smalti_model *model = smalti_model_open(session, &options, &error);
	SUCCEEDS(model ? 0 : -1, &error, "model");
	struct smalti_batch *batch = smalti_batch_open(model, &error);
	SUCCEEDS(embedded_submit(model, batch, &request, 0, &callbacks, &error), &error, describe(plan));
	smalti_batch_close(batch);
	smalti_model_close(model);
	CHECK(image->status == 0 && image->rows == request.height, image->message);
}

static struct smalti_session *open_session(const struct plan *plan, const char *trace)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options options;
	smalti_session_defaults(&options);
	test_ask_for(&options, plan->devices);
	options.cpus = plan->cpus;
	options.gpu_memory_limit = plan->limit * MEGABYTE;
	options.policy = policies[plan->policy];
	options.reproducible = plan->on_devices;
	options.trace = trace;
	struct smalti_session *session = smalti_session_open(&options, &error);
	if (!session && error.code == SMALTI_ENODEV)
		printf("\n    skipped: %s", error.message);
	else
		SUCCEEDS(session ? 0 : -1, &error, "session");
	return session;
}

/* What one CPU makes of the same request with no tiling; made once. */
static const struct image *expected(const struct plan *plan)
{
	static struct image images[COUNT(sizes)][2][2];
	struct image *image = &images[plan->size][plan->precision][plan->guided];
	if (image->count)
		return image;
	const struct plan alone = {
	    .cpus = 1, .size = plan->size, .precision = plan->precision, .guided = plan->guided};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = open_session(&alone, NULL);
	make_image(session, &alone, image);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
	return image;
}

/* The largest difference; NaN counts. */
static double distance(const struct image *a, const struct image *b)
{
	double worst = 0;
	for (int64_t i = 0; i < a->count; i++) {
		const double off = fabs((double)a->latents[i] - (double)b->latents[i]);
		worst = off <= worst ? worst : off;
	}
	return a->count == b->count ? worst : (double)INFINITY;
}

static double largest(const struct image *image)
{
	double value = 0;
	for (int64_t i = 0; i < image->count; i++)
		value = fmax(value, fabs((double)image->latents[i]));
	return value;
}

/* In f32 but for rounding; in bf16 as far from a CPU's as that one's rounding takes it from f32. */
static void compare(const struct plan *plan, const struct image *found)
{
	struct plan exact = *plan;
	exact.precision = 0;
	const struct image *one = expected(plan);
	const double allowed = plan->precision ? 3 * distance(one, expected(&exact)) : 5e-4 * largest(one);
	char what[512];
	snprintf(what, sizeof(what), "%s: off by %g, allowed %g", describe(plan), distance(one, found),
		 allowed);
	CHECK(distance(one, found) <= allowed, what);
}

/* What a trace tells of devices. */
struct account {
	double held;  /* megabytes at most when a task ended */
	double moved; /* megabytes that went to them */
};

static struct account read_account(const char *trace)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct account account = {0};
	cJSON *read = smalti_json_read(trace, 1 << 28, &error), *e;
	SUCCEEDS(read ? 0 : -1, &error, "trace");
	cJSON_ArrayForEach (e, cJSON_GetObjectItem(read, "traceEvents"))
		if (strstr(cJSON_GetObjectItem(e, "name")->valuestring, "memory of device"))
			account.held =
			    fmax(account.held,
				 cJSON_GetObjectItem(cJSON_GetObjectItem(e, "args"), "in use")->valuedouble);
	cJSON_ArrayForEach (e, cJSON_GetObjectItem(read, "transfers"))
		if (cJSON_GetObjectItem(e, "to")->valuedouble > 0)
			account.moved += cJSON_GetObjectItem(e, "bytes")->valuedouble / MEGABYTE;
	cJSON_Delete(read);
	return account;
}

/* Makes the plan's image and holds it against a CPU's; false where there is no device. */
static bool try_plan(const struct plan *plan, struct account *account)
{
	const char *trace = test_file("trace.json");
	struct smalti_error error = SMALTI_NO_ERROR;
	struct image image = {0};
	struct smalti_session *session = open_session(plan, trace);
	if (!session)
		return false;
	make_image(session, plan, &image);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
	compare(plan, &image);
	*account = read_account(trace);
	char what[512];
	snprintf(what, sizeof(what), "%s: %.3f MB held", describe(plan), account->held);
	CHECK(plan->limit == 0 || account->held <= (double)plan->limit, what);
	return true;
}

static void random_plans(void)
{
	uint64_t state = 7;
	int limited = 0;
	for (int i = 0; i < PLANS; i++) {
		const struct plan plan = random_plan(&state);
		struct account account;
		if (!try_plan(&plan, &account))
			return;
		limited += plan.limit > 0;
	}
	CHECK(limited >= LIMITED, "plans with a limit");
}

/* A device that has memory for a quarter of the model's weights, which are nearly all that moves to it: they
 * are dropped, and come again with each step. */
static void a_quarter_of_the_weights(void)
{
	struct plan plan = {
	    .devices = 1, .cpus = 1, .on_devices = true, .grain = SMALTI_GRAIN_OPERATION, .size = 1};
	struct account all, quarter;
	if (!try_plan(&plan, &all))
		return;
	plan.limit = (int64_t)all.moved / 4;
	if (!try_plan(&plan, &quarter))
		return;
	printf("\n    to the device: %.1f MB, with a limit of %lld MB %.1f MB", all.moved,
	       (long long)plan.limit, quarter.moved);
	CHECK(quarter.moved > 1.5 * all.moved, "weights move again");
}

static const struct test tests[] = {
    {"random plans", random_plans},
    {"a quarter of the weights", a_quarter_of_the_weights},
};

TEST_PROGRAM()
{
	return test_main("plans over devices", tests, COUNT(tests));
}
