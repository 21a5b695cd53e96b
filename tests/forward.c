/* SPDX-License-Identifier: Apache-2.0 */
/* forward TRANSFORMER FILE KIND: one forward of the transformer in a directory, of KIND.x, KIND.t and
 * KIND.text of a file, beside its KIND.out. Says how far it is from that, relative to the largest value;
 * fails beyond 2e-5. */
#include "harness.h"
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>

static const struct smalti_tensor_view *tensor(const struct smalti_safetensors *file, const char *kind,
					       const char *part)
{
	char name[64];
	snprintf(name, sizeof(name), "%s.%s", kind, part);
	const struct smalti_tensor_view *view = smalti_safetensors_find(file, name);
	if (!view) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return view;
}

static struct smalti_denoiser *load(struct smalti_task_group *task_group, const char *directory,
				    struct smalti_checkpoint **weights, struct smalti_error *error)
{
	char path[4096];
	struct smalti_transformer_config config;
	snprintf(path, sizeof(path), "%s/config.json", directory);
	if (smalti_transformer_config_read(path, &config, error))
		return NULL;
	*weights = smalti_checkpoint_open(directory, SMALTI_STEM_DIFFUSERS, NULL, error);
	if (!*weights || smalti_transformer_config_check(&config, *weights, error))
		return NULL;
	return smalti_dit_new(task_group, &config, *weights, SMALTI_F32, error);
}

/* Returns the error relative to the largest value; -1 with an error. */
static double compare(struct smalti_session *session, struct smalti_denoiser *model,
		      const struct smalti_safetensors *file, const char *kind, struct smalti_error *error)
{
	const struct smalti_tensor_view *x = tensor(file, kind, "x"), *text = tensor(file, kind, "text"),
					*out = tensor(file, kind, "out"), *t = tensor(file, kind, "t");
	float *v = malloc((size_t)out->bytes);
	double relative = -1;
	if (!stage_dit(session, model, x->data, x->shape[2], x->shape[3], *(const float *)t->data, text->data,
		       text->shape[1], 7, 8, v, error)) {
		const int64_t count = out->bytes / (int64_t)sizeof(float);
		relative = test_max_error(v, out->data, count) / test_max_abs(out->data, count);
	}
	free(v);
	return relative;
}

int main(int argc, char **argv)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_safetensors *file = argc == 4 ? smalti_safetensors_open(argv[2], &error) : NULL;
	if (!file) {
		fprintf(stderr, "forward TRANSFORMER FILE KIND: %s\n", error.message);
		return 2;
	}
	struct smalti_session *session = stage_session(NULL, 0);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_checkpoint *weights = NULL;
	struct smalti_denoiser *model = load(task_group, argv[1], &weights, &error);
	const double relative = model ? compare(session, model, file, argv[3], &error) : -1;
	printf("%s: %.1e of the largest %s\n", argv[3], relative, error.message);
	smalti_denoiser_free(model);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(weights);
	smalti_safetensors_close(file);
	if (smalti_session_close(session, &error))
		return 1;
	return relative < 0 || relative > 2e-5;
}
