/* SPDX-License-Identifier: Apache-2.0 */
/* Step caches. golden/cache/cache.json has, of one request, the decisions of an implementation with PyTorch,
 * and the table of its bounds; cache.safetensors the final latents. The model is the embedded one. */
#include "base/file.h"
#include "device_session.h"
#include "embedded.h"
#include "golden.h"
#include "harness.h"
#include "jobs/plan.h"
#include "received.h"
#include "stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 20, CALLS = 2 * STEPS };

static struct smalti_session *session;
static struct smalti_model *model;
static cJSON *golden;

static double number(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key)->valuedouble;
}

static struct smalti_request golden_request(const char *step_cache)
{
	struct smalti_request request;
	smalti_request_defaults(&request);
	request.prompt = cJSON_GetObjectItemCaseSensitive(golden, "prompt")->valuestring;
	request.seed = (uint64_t)number(golden, "seed");
	request.steps = (int64_t)number(golden, "steps");
	request.guidance = number(golden, "guidance_scale");
	request.step_cache = step_cache;
	return request;
}

/* Returns the path of a new file with the reference's table for the requests of this model. */
static const char *write_table(void)
{
	static char path[512];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_request request = golden_request(NULL);
	smalti_step_ratios ratios[STEPS];
	const cJSON *table = cJSON_GetObjectItemCaseSensitive(golden, "table");
	for (int i = 0; i < STEPS; i++)
		for (int g = 0; g < SMALTI_STEP_GAPS; g++)
			ratios[i][g] = cJSON_GetArrayItem(cJSON_GetArrayItem(table, i), g + 1)->valuedouble;
	struct smalti_plan *plan = smalti_request_resolve(model, &request, &error);
	SUCCEEDS(plan ? 0 : -1, &error, "plan");
	const struct smalti_step_cache_key key = smalti_plan_step_key(plan);
	snprintf(path, sizeof(path), "%s", test_write("step_cache.json", "", 0));
	unlink(path);
	SUCCEEDS(smalti_step_cache_table_write(path, &key, 4, ratios, &error), &error, "table");
	smalti_plan_free(plan);
	return path;
}

static void open_model(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	size_t length;
	char *text = smalti_file_read(test_data("golden/cache/cache.json"), 1 << 20, &length, &error);
	golden = text ? smalti_json_parse(text, length, &error) : NULL;
	CHECK(golden, error.message);
	free(text);
	model = embedded_open(session);
	free(model->step_cache_path);
	model->step_cache_path = smalti_format(&error, "%s", write_table());
}

static void open_on_cpus(void)
{
	session = stage_session(NULL, 0);
	open_model();
}

static void close_model(void)
{
	cJSON_Delete(golden);
	embedded_close(session, model);
}

/* Decisions in double that are not within half a percent of the threshold hold for any rounding. */
static void check_decisions(const struct received *received, const cJSON *expected, const char *name)
{
	char what[96];
	CHECK(received->steps == STEPS && received->branches == 2, name);
	for (int i = 0; i < CALLS; i++) {
		const cJSON *decision = cJSON_GetArrayItem(expected, i);
		const cJSON *skipped = cJSON_GetArrayItem(decision, 2),
			    *value = cJSON_GetArrayItem(decision, 3);
		const struct smalti_step_call *call = &received->calls[i];
		snprintf(what, sizeof(what), "%s: step %d, branch %d: %g", name, i / 2, i % 2, call->value);
		CHECK(call->skipped == cJSON_IsTrue(skipped), what);
		if (cJSON_IsNumber(value))
			CHECK(fabs(call->value / value->valuedouble - 1) < 2e-3, what);
		else
			CHECK(isnan(call->value), what);
	}
}

static void check_case(const struct received *received, const struct smalti_safetensors *file,
		       const cJSON *of)
{
	char name[64];
	snprintf(name, sizeof(name), "%s.latents", of->string);
	const struct smalti_tensor_view *view = smalti_safetensors_find(file, name);
	float *expected = golden_values(view);
	CHECK(received_complete(received), received->error.message);
	check_decisions(received, cJSON_GetObjectItemCaseSensitive(of, "decisions"), of->string);
	golden_near(received->latents, expected, view->bytes / (int64_t)sizeof(float), 5e-4, name);
	free(expected);
}

/* Makes the images of all golden cases at the same time, each in bands of every size, and case i with
 * strategies[i] if there are any. */
static void compare_with_reference(const int64_t *bands, int sizes, const char *const *strategies)
{
	enum { CASES = 4, MOST = 3 * CASES };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_safetensors *file = golden_open("golden/cache/cache.safetensors");
	struct smalti_batch *batch = smalti_batch_open(model, &error);
	const cJSON *cases = cJSON_GetObjectItemCaseSensitive(golden, "cases");
	struct received received[MOST] = {0};
	CHECK(cJSON_GetArraySize(cases) == CASES, "cases");
	for (int i = 0; i < CASES * sizes; i++) {
		char text[64];
		const cJSON *of = cJSON_GetArrayItem(cases, i % CASES);
		const bool bound = strncmp(of->string, "bound", 5) == 0;
		snprintf(text, sizeof(text), "%s:%g", bound ? "bound" : "first-block",
			 number(of, "threshold"));
		struct smalti_request request = golden_request(text);
		request.tile_tokens = bands[i / CASES];
		request.strategy = strategies ? strategies[i] : NULL;
		SUCCEEDS(received_submit(model, batch, &request, 0, &received[i], &error), &error, text);
	}
	smalti_batch_close(batch);
	for (int i = 0; i < CASES * sizes; i++) {
		check_case(&received[i], file, cJSON_GetArrayItem(cases, i % CASES));
		received_forget(&received[i]);
	}
	smalti_safetensors_close(file);
}

static void reference(void)
{
	static const int64_t bands[] = {0, 7, 16};
	open_on_cpus();
	compare_with_reference(bands, COUNT(bands), NULL);
	close_model();
}

static void reference_on_devices(void)
{
	static const char *const strategies[] = {"patch2", "tensor2", "cfg2", "ring2"};
	session = test_open_devices("step cache", "1", 2, NULL, NULL);
	if (!session)
		return;
	open_model();
	compare_with_reference((const int64_t[]){0}, 1, strategies);
	close_model();
}

static const struct test tests[] = {
    {"equal to the reference", reference},
    {"equal to the reference on devices", reference_on_devices},
};

TEST_MAIN("step cache", tests)
