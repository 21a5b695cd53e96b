/* SPDX-License-Identifier: Apache-2.0 */
#include "embedded.h"

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

struct smalti_model *embedded_open(struct smalti_session *session)
{
	return embedded_open_in(session, SMALTI_PRECISION_F32);
}

static struct smalti_model *open_with(struct smalti_session *session, enum smalti_precision precision,
				      const char *transformer)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_model_options options;
	smalti_model_defaults(&options);
	options.directory = test_model("tesserae");
	options.transformer = transformer;
	options.precision = precision;
	struct smalti_model *model = smalti_model_open(session, &options, &error);
	if (!model) {
		fprintf(stderr, "%s\n", error.message);
		exit(1);
	}
	return model;
}

struct smalti_model *embedded_open_in(struct smalti_session *session, enum smalti_precision precision)
{
	return open_with(session, precision, NULL);
}

struct smalti_model *embedded_open_golden(struct smalti_session *session, enum smalti_precision precision,
					  const char *transformer)
{
	char name[64];
	snprintf(name, sizeof(name), "golden/%s", transformer);
	return open_with(session, precision, test_data(name));
}

void embedded_close(struct smalti_session *session, struct smalti_model *model)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_model_close(model);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

int embedded_submit(const struct smalti_model *model, struct smalti_batch *batch,
		    const struct smalti_request *request, int64_t image,
		    const struct smalti_image_callbacks *callbacks, struct smalti_error *error)
{
	struct smalti_request resolved = *request;
	struct smalti_plan *plan = smalti_request_resolve(model, &resolved, error);
	const int status = plan ? smalti_batch_submit(batch, plan, image, callbacks, error) : -1;
	smalti_plan_free(plan);
	return status;
}
