/* SPDX-License-Identifier: Apache-2.0 */
/* Step caches. golden/cache/cache.json has, of one request, the decisions of an implementation with PyTorch,
 * and the table of its bounds; cache.safetensors the final latents. The model is the embedded one. */
#include "base/file.h"
#include "device_session.h"
#include "embedded.h"
#include "golden.h"
#include "harness.h"
#include "jobs/plan_step_cache.h"
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
	model = embedded_open_golden(session, SMALTI_PRECISION_F32, "transformer-2");
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

static void check_latents(const struct received *received, const char *of)
{
	char name[64];
	snprintf(name, sizeof(name), "%s.latents", of);
	struct smalti_safetensors *file = golden_open("golden/cache/cache.safetensors");
	const struct smalti_tensor_view *view = smalti_safetensors_find(file, name);
	float *expected = golden_values(view);
	golden_near(received->latents, expected, view->bytes / (int64_t)sizeof(float), 5e-4, name);
	free(expected);
	smalti_safetensors_close(file);
}

static void check_case(const struct received *received, const cJSON *of)
{
	CHECK(received_complete(received), received->error.message);
	check_decisions(received, cJSON_GetObjectItemCaseSensitive(of, "decisions"), of->string);
	check_latents(received, of->string);
}

/* Makes the images of all golden cases at the same time, each in bands of every size, and case i with
 * strategies[i] if there are any. */
static void compare_with_reference(const int64_t *bands, int sizes, const char *const *strategies)
{
	enum { CASES = 4, MOST = 3 * CASES };
	struct smalti_error error = SMALTI_NO_ERROR;
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
		check_case(&received[i], cJSON_GetArrayItem(cases, i % CASES));
		received_forget(&received[i]);
	}
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

/* Writes a sealed file; `tables` is the text of what stands under that key. */
static const char *write_file(const char *tables)
{
	static char path[512];
	char text[1024];
	struct smalti_error error = SMALTI_NO_ERROR;
	snprintf(text, sizeof(text), "{\"tables\": %s}", tables);
	cJSON *file = cJSON_Parse(text);
	CHECK(file, text);
	snprintf(path, sizeof(path), "%s", test_write("tables.json", "", 0));
	SUCCEEDS(smalti_sealed_write(path, file, &error), &error, "write");
	cJSON_Delete(file);
	return path;
}

#define TABLE(model, guidance, timesteps, ratios)                                                            \
	"[{\"model\": " model                                                                                \
	", \"precision\": \"f32\", \"scheduler\": \"dpm++\", \"guidance_scale\": " guidance                  \
	", \"timesteps\": " timesteps ", \"ratios\": " ratios "}]"

static void damaged_tables_are_refused(void)
{
	static const struct {
		const char *what, *tables;
		enum smalti_code code;
		const char *word;
	} cases[] = {
	    {"good", TABLE("\"m\"", "2", "[999, 500]", "[[0, 0, 0], [0.5, 0, 0]]"), SMALTI_OK, NULL},
	    {"no list", "3", SMALTI_EFORMAT, "a list"},
	    {"empty", "[]", SMALTI_EINVAL, "none of its 0 tables"},
	    {"numbers", "[3, null, []]", SMALTI_EINVAL, "none of its 3 tables"},
	    {"another model", TABLE("\"n\"", "2", "[999, 500]", "[]"), SMALTI_EINVAL, "none of its 1 tables"},
	    {"no model", TABLE("3", "2", "[999, 500]", "[]"), SMALTI_EINVAL, "none of its 1 tables"},
	    {"another guidance", TABLE("\"m\"", "2.5", "[999, 500]", "[]"), SMALTI_EINVAL,
	     "guidance scale of 2;"},
	    {"other timesteps", TABLE("\"m\"", "2", "[999, 501]", "[]"), SMALTI_EINVAL, "none of"},
	    {"fewer", TABLE("\"m\"", "2", "[999]", "[]"), SMALTI_EINVAL, "none of"},
	    {"more", TABLE("\"m\"", "2", "[999, 500, 1]", "[]"), SMALTI_EINVAL, "none of"},
	    {"no timesteps", TABLE("\"m\"", "2", "3", "[]"), SMALTI_EINVAL, "none of"},
	    {"no rows", TABLE("\"m\"", "2", "[999, 500]", "[]"), SMALTI_EFORMAT, "each of 2 steps"},
	    {"a row", TABLE("\"m\"", "2", "[999, 500]", "[[0, 0, 0]]"), SMALTI_EFORMAT, "each of 2 steps"},
	    {"three rows", TABLE("\"m\"", "2", "[999, 500]", "[[], [], []]"), SMALTI_EFORMAT,
	     "each of 2 steps"},
	    {"rows of four", TABLE("\"m\"", "2", "[999, 500]", "[[0, 0, 0, 0], []]"), SMALTI_EFORMAT,
	     "row 0"},
	    {"texts", TABLE("\"m\"", "2", "[999, 500]", "[[], [\"1\"]]"), SMALTI_EFORMAT, "row 1"},
	    {"negative", TABLE("\"m\"", "2", "[999, 500]", "[[], [-1]]"), SMALTI_EFORMAT, "row 1"},
	    {"huge", TABLE("\"m\"", "2", "[999, 500]", "[[], [1e31]]"), SMALTI_EFORMAT, "row 1"},
	};
	struct smalti_sampler *sampler = calloc(1, sizeof(*sampler) + 2 * sizeof(sampler->step[0]));
	sampler->steps = 2;
	sampler->step[0].timestep = 999;
	sampler->step[1].timestep = 500;
	const struct smalti_step_cache_key key = {"m", "f32", "dpm++", 2, sampler};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_step_cache_table *table =
		    smalti_step_cache_table_read(write_file(cases[i].tables), &key, &error);
		if (cases[i].code == SMALTI_OK)
			CHECK(table && table->steps == 2 && table->ratios[1][0] == 0.5, cases[i].what);
		else
			FAILS(table ? 0 : -1, &error, cases[i].code, cases[i].what, cases[i].word);
		free(table);
	}
	free(sampler);
}

/* What is measured on an image bounds the error of its first skipped call, whose input is the same. */
static void calibration(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	open_on_cpus();
	struct smalti_request request = golden_request("calibration");
	struct received measured = {0}, plain = {0}, checked = {0};
	struct smalti_batch *batch = smalti_batch_open(model, &error);
	SUCCEEDS(received_submit(model, batch, &request, 0, &measured, &error), &error, "calibration");
	request.step_cache = NULL;
	SUCCEEDS(received_submit(model, batch, &request, 0, &plain, &error), &error, "without");
	smalti_batch_wait(batch);
	CHECK(received_complete(&measured) && received_complete(&plain), measured.error.message);
	CHECK(memcmp(measured.latents, plain.latents, 4096) == 0, "a calibration changes no bit");
	check_latents(&plain, "none");
	CHECK(measured.ratios && measured.ratios[0][0] == 0 && measured.ratios[1][0] > 0, "ratios");
	CHECK(measured.ratios[2][2] == 0 && measured.ratios[3][2] > 0, "gaps");
	request.step_cache = "calibration";
	struct smalti_plan *plan = smalti_request_resolve(model, &request, &error);
	const struct smalti_step_cache_key key = smalti_plan_step_key(plan);
	SUCCEEDS(smalti_step_cache_table_write(model->step_cache_path, &key, 1,
					       (const smalti_step_ratios *)measured.ratios, &error),
		 &error, "table");
	smalti_plan_free(plan);
	request.step_cache = "bound:1000";
	request.step_cache_checks = true;
	SUCCEEDS(received_submit(model, batch, &request, 0, &checked, &error), &error, "checked");
	smalti_batch_close(batch);
	for (int branch = 0; branch < 2; branch++) {
		const struct smalti_step_call *call = &checked.calls[2 + branch];
		CHECK(call->skipped && call->error > 0, "the second step is skipped");
		CHECK(call->error <= call->value / 1.5 * (1 + 1e-5), "an error of what was measured");
		CHECK(!checked.calls[2 * STEPS - 2 + branch].skipped, "the last step is not skipped");
	}
	received_forget(&measured);
	received_forget(&plain);
	received_forget(&checked);
	close_model();
}

static const struct test tests[] = {
    {"damaged tables are refused", damaged_tables_are_refused},
    {"calibration", calibration},
    {"equal to the reference", reference},
    {"equal to the reference on devices", reference_on_devices},
};

TEST_MAIN("step cache", tests)
