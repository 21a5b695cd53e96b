/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model opens at once, and what only when somebody asks for it. */
#include "base/file.h"
#include "harness.h"
#include "jobs/model.h"
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct smalti_session *session;

static struct smalti_model *open_model(const char *vae)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_model_options options;
	smalti_model_defaults(&options);
	options.folder = test_model("tesserae");
	options.vae = vae;
	struct smalti_model *model = smalti_model_open(session, &options, &error);
	SUCCEEDS(model ? 0 : -1, &error, "open");
	return model;
}

static void encoder_on_demand(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_model_info before, after;
	struct smalti_model *model = open_model(NULL);
	smalti_model_info(model, &before);
	struct smalti_vae_encoder *encoder = smalti_model_vae_encoder(model, &error);
	SUCCEEDS(encoder ? 0 : -1, &error, "encoder");
	CHECK(smalti_model_vae_encoder(model, &error) == encoder, "opened once");
	smalti_model_info(model, &after);
	CHECK(after.weight_bytes == before.weight_bytes + smalti_vae_encoder_weight_bytes(encoder),
	      "its weights count from then on");
	smalti_model_close(model);
}

/* A folder with the embedded model's VAE, but without the tensors of its encoder. */
static void write_decoder(const char *folder)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char path[512];
	struct smalti_checkpoint *whole =
	    smalti_checkpoint_open(test_model("tesserae/vae"), SMALTI_STEM_DIFFUSERS, NULL, &error);
	SUCCEEDS(whole ? 0 : -1, &error, "embedded VAE");
	struct smalti_tensor_view *kept =
	    calloc((size_t)smalti_checkpoint_count(whole), sizeof(struct smalti_tensor_view));
	if (!kept)
		abort();
	int64_t count = 0;
	for (int64_t i = 0; i < smalti_checkpoint_count(whole); i++) {
		const struct smalti_tensor_view *view = smalti_checkpoint_at(whole, i);
		if (strncmp(view->name, "encoder.", 8) != 0)
			kept[count++] = *view;
	}
	snprintf(path, sizeof(path), "%s/%s.safetensors", folder, SMALTI_STEM_DIFFUSERS);
	SUCCEEDS(smalti_safetensors_write(path, kept, count, &error), &error, "write");
	free(kept);
	smalti_checkpoint_close(whole);
	snprintf(path, sizeof(path), "cp '%s' '%s'", test_model("tesserae/vae/config.json"), folder);
	CHECK(system(path) == 0, path);
}

static void no_encoder(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *folder = test_scratch();
	write_decoder(folder);
	struct smalti_model *model = open_model(folder);
	const int status = smalti_model_vae_encoder(model, &error) ? 0 : -1;
	FAILS(status, &error, SMALTI_EFORMAT, "encoder", folder, "encoder.");
	smalti_model_close(model);
}

static const struct test tests[] = {
    {"the encoder on demand", encoder_on_demand},
    {"a model without an encoder", no_encoder},
};

int main(void)
{
	session = stage_session(NULL, 0);
	int status = test_main("models", tests, sizeof(tests) / sizeof(tests[0]));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
