/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/model.h"
#include "jobs/vae.h"
#include "simulator/case.h"
#include "simulator/needs.h"

/* The images of a case. */
struct images {
	struct smalti_case *c;
	struct smalti_model *model;
	struct smalti_error failure; /* an image's */
};

static void expect_denoising(const struct images *images)
{
	const struct smalti_request *request = &images->c->options->request;
	const struct smalti_denoiser *denoiser = images->model->denoiser;
	const double side = (double)(denoiser->patch_size * smalti_model_factor(images->model)),
		     native = (double)(denoiser->sample_size * smalti_model_factor(images->model)),
		     pixels =
			 request->width ? (double)request->width * (double)request->height : native * native;
	smalti_case_expect(images->c, images->model->transformer.width, pixels / (side * side));
}

static int open_model(struct images *images, struct smalti_error *error)
{
	struct smalti_model_options model;
	smalti_model_defaults(&model);
	model.directory = images->c->directory;
	model.precision = (enum smalti_precision)images->c->options->precision;
	images->model = smalti_model_open(images->c->session, &model, error);
	if (!images->model || smalti_case_precision(images->c, images->model->vae->compute, error) < 0)
		return -1;
	expect_denoising(images);
	return 0;
}

static int on_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		   struct smalti_error *error)
{
	(void)user, (void)first, (void)count, (void)rgb, (void)error;
	return 0;
}

static void on_done(void *user, int status, const struct smalti_error *cause)
{
	struct images *images = user;
	if (status < 0 && !images->failure.code)
		images->failure = *cause;
}

static int make_images(struct images *images, struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_image_callbacks callbacks = {.user = images, .rows = on_rows, .done = on_done};
	struct smalti_batch *batch = smalti_batch_open(images->model, error);
	int status = batch ? 0 : -1;
	for (int64_t image = 0; image < images->c->options->request.images && status == 0; image++)
		status = smalti_batch_submit(batch, plan, image, &callbacks, error);
	smalti_batch_close(batch);
	return status == 0 && images->failure.code ? smalti_pass(error, &images->failure) : status;
}

/* Prints what a plan's images showed. */
static int print(const struct images *images, const struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_case *c = images->c;
	struct smalti_simulation *simulation = smalti_simulation_take(c->session, error);
	const struct smalti_case_outcome outcome = {.strategy = smalti_plan_strategy(plan),
						    .simulation = simulation};
	int status =
	    simulation ? smalti_needs(images->model, plan, c->options->blocking, simulation, error) : -1;
	if (status == 0)
		status = smalti_case_print(c, &outcome, error);
	smalti_simulation_free(simulation);
	return status;
}

int smalti_case_images(struct smalti_case *c, struct smalti_error *error)
{
	struct images images = {.c = c};
	struct smalti_request request = c->options->request;
	struct smalti_plan *plan =
	    open_model(&images, error) == 0 ? smalti_request_resolve(images.model, &request, error) : NULL;
	const int status = plan && make_images(&images, plan, error) == 0 ? print(&images, plan, error) : -1;
	smalti_plan_free(plan);
	smalti_model_close(images.model);
	return status;
}
