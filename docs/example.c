/* SPDX-License-Identifier: Apache-2.0 */
/* Paints one image with the embedded model and writes it as a PPM file to standard output:
 *
 *   cc example.c $(pkg-config --cflags --libs smalti) -o example
 *   ./example "a red star above a blue ring on a white background" >star.ppm
 */
#include <smalti/generate.h>
#include <stdio.h>

struct output {
	int64_t width;
	int status;
	struct smalti_error error;
};

static int write_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		      struct smalti_error *error)
{
	const struct output *output = user;
	(void)first, (void)error; /* rows come in order; a failed write shows in the stream's error flag */
	fwrite(rgb, 3, (size_t)(count * output->width), stdout);
	return 0;
}

static void done(void *user, int status, const struct smalti_error *error)
{
	struct output *output = user;
	output->status = status;
	if (status)
		output->error = *error;
}

static int paint(struct smalti_model *model, const char *prompt, struct smalti_error *error)
{
	struct smalti_request request;
	smalti_request_defaults(&request);
	request.prompt = prompt;
	struct smalti_plan *plan = smalti_request_resolve(model, &request, error);
	if (!plan)
		return -1;
	struct smalti_batch *batch = smalti_batch_open(model, error);
	if (!batch) {
		smalti_plan_free(plan);
		return -1;
	}

	printf("P6\n%lld %lld\n255\n", (long long)request.width, (long long)request.height);
	struct output output = {request.width, 0, SMALTI_NO_ERROR};
	struct smalti_image_callbacks callbacks = {.user = &output, .rows = write_rows, .done = done};
	int status = smalti_batch_submit(batch, plan, 0, &callbacks, error);
	smalti_batch_close(batch); /* waits */
	smalti_plan_free(plan);
	if (!status && output.status) {
		*error = output.error;
		status = -1;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options session_options;
	struct smalti_model_options model_options;
	smalti_session_defaults(&session_options);
	smalti_model_defaults(&model_options);
	struct smalti_session *session = smalti_session_open(&session_options, &error);
	struct smalti_model *model = session ? smalti_model_open(session, &model_options, &error) : NULL;
	int status =
	    model ? paint(model, argc > 1 ? argv[1] : "a blue circle on a white background", &error) : -1;
	smalti_model_close(model);
	if (session && smalti_session_close(session, &error))
		status = -1;
	if (status)
		fprintf(stderr, "%s\n", error.message);
	else if ((status = fflush(stdout) || ferror(stdout)))
		fprintf(stderr, "standard output: cannot be written\n");
	return status ? 1 : 0;
}
