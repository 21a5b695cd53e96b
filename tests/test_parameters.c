/* SPDX-License-Identifier: Apache-2.0
 *
 * The transformer's tensors as tiles that are trained: what they are called, and their values from files. */
#include "base/dtype.h"
#include "codelets/codelets.h"
#include "graphs/parameters.h"
#include "graphs/pixart/train.h"
#include "harness.h"
#include "stage.h"
#include "synthetic.h"

static struct smalti_session *session;

static const struct smalti_transformer_config tiny = {
    .layers = 1,
    .heads = 2,
    .head_dim = 6,
    .width = 12,
    .in_channels = 4,
    .out_channels = 8,
    .patch_size = 2,
    .sample_size = 8,
    .caption_channels = 7,
    .interpolation_scale = 1,
    .norm_eps = 1e-6,
    .attention_bias = true,
};

static int compare(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	const struct smalti_tensor_view *view = user;
	(void)error;
	for (int64_t i = 0; i < count; i++) {
		float expected;
		smalti_widen(view->dtype, (const char *)view->data + i * smalti_dtype_bytes(view->dtype), 1,
			     &expected);
		CHECK(values[i] == expected, view->name);
	}
	return 0;
}

static void values_of_files(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_checkpoint *checkpoint = synthetic_transformer(&tiny, 0.1);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_parameters *parameters =
	    smalti_parameters_new(task_group, &smalti_dit_trained, &tiny, &smalti_strategy_none, &error);
	SUCCEEDS(parameters ? 0 : -1, &error, "list");
	CHECK(parameters->count == checkpoint->count, "all tensors of the configuration");
	SUCCEEDS(smalti_parameters_read(parameters, task_group, &tiny, checkpoint, true, &error), &error,
		 "read");
	for (int64_t i = 0; i < parameters->count; i++) {
		const struct smalti_parameter *p = &parameters->list[i];
		struct smalti_tensor_view *view = &checkpoint->entries[i].view;
		CHECK(smalti_parameters_find(parameters, p->name) == i && !strcmp(p->name, view->name),
		      p->name);
		smalti_insert(deliver, task_group, (.x = p->value), .count = p->count, .sink = compare,
			      .user = view);
	}
	CHECK(smalti_parameters_find(parameters, "proj_out") == -1, "no such tensor");
	smalti_parameters_free(parameters);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "values");
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
}

/* A file of another geometry is refused by name before a value is read. */
static void other_shapes(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config wider = tiny;
	wider.caption_channels = 9;
	struct smalti_checkpoint *checkpoint = synthetic_transformer(&tiny, 0.1);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_parameters *parameters =
	    smalti_parameters_new(task_group, &smalti_dit_trained, &wider, &smalti_strategy_none, &error);
	int status = smalti_parameters_read(parameters, task_group, &wider, checkpoint, true, &error);
	FAILS(status, &error, SMALTI_EFORMAT, "another width of captions", "caption_projection.linear_1",
	      "[12, 9]", "[12, 7]");
	smalti_parameters_free(parameters);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
}

static const struct test tests[] = {
    {"values of files", values_of_files},
    {"other shapes", other_shapes},
};

TEST_PROGRAM()
{
	session = stage_session("lws", 2);
	const int status = test_main("parameters", tests, COUNT(tests));
	smalti_session_close(session, NULL);
	return status;
}
