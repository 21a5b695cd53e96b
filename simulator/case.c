/* SPDX-License-Identifier: Apache-2.0 */
#include "simulator/case.h"
#include "bench/make_model.h"
#include "jobs/model.h"
#include "jobs/vae.h"
#include "simulation/machine.h"
#include "simulator/needs.h"

/* What a running case has open. */
struct simulated_case {
	const struct smalti_simulate_options *options;
	struct smalti_simulated_machine machine;
	char *directory; /* the model's; NULL: the embedded one */
	struct smalti_session *session;
	struct smalti_model *model;
	struct smalti_error failure; /* an image's */
};

/* Makes a geometry's model, without weights, or takes a named one. */
static int find_model(struct simulated_case *c, struct smalti_error *error)
{
	const char *name = c->options->model;
	int geometry = 0;
	while (name && geometry < SMALTI_GEOMETRIES && strcmp(smalti_geometry_names[geometry], name) != 0)
		geometry++;
	if (!name)
		return 0;
	if (geometry == SMALTI_GEOMETRIES) {
		c->directory = smalti_format(error, "%s", name);
		return c->directory ? 0 : -1;
	}
	c->directory = smalti_format(error, "%s/model", getenv(SMALTI_MACHINE_DIRECTORY));
	const struct smalti_make_model_options wanted = {.directory = c->directory,
							 .geometry = (enum smalti_geometry)geometry,
							 .dtype = SMALTI_F16,
							 .with = {true, true, true},
							 .shard_bytes = INT64_MAX,
							 .hollow = true};
	return c->directory ? smalti_make_model(&wanted, error) : -1;
}

/* Begins the simulation; the VAE decides the dtype of convolutions. */
static int begin(struct simulated_case *c, enum smalti_dtype convolutions, struct smalti_error *error)
{
	const int precision = c->options->precision;
	const int lower = convolutions == SMALTI_F32 && precision != SMALTI_PRECISION_TF32
			      ? SMALTI_PRECISION_F32
			      : precision;
	const int precisions[SMALTI_WORKS] = {
	    [SMALTI_PRODUCTS] = precision, [SMALTI_CONVOLUTIONS] = lower, [SMALTI_ATTENTION] = precision};
	return smalti_simulation_open(&c->machine, precisions, error);
}

/* Tells the operations of denoising, over the width w: for each token of a block, q, k, v and their result
 * for the image, two of them for the caption, and the MLP are products of 28 w² operations; attention to all
 * others is 4 w each. */
static void expect_denoising(const struct simulated_case *c)
{
	const struct smalti_transformer_config *config = &c->model->transformer;
	const struct smalti_request *request = &c->options->request;
	const struct smalti_denoiser *denoiser = c->model->denoiser;
	const double side = (double)(denoiser->patch_size * smalti_model_factor(c->model)),
		     native = (double)(denoiser->sample_size * smalti_model_factor(c->model)),
		     width = (double)config->width,
		     pixels =
			 request->width ? (double)request->width * (double)request->height : native * native;
	const double flops[SMALTI_WORKS] = {
	    [SMALTI_PRODUCTS] = 28 * width, [SMALTI_ATTENTION] = 4 * pixels / (side * side)};
	smalti_simulation_expect(c->session, flops);
}

static int open_all(struct simulated_case *c, struct smalti_error *error)
{
	const struct smalti_simulate_options *o = c->options;
	struct smalti_session_options session;
	struct smalti_model_options model;
	smalti_session_defaults(&session);
	smalti_model_defaults(&model);
	if (smalti_machine_read(o->machine, &c->machine, error) < 0)
		return -1;
	if (o->blocking)
		smalti_machine_block(&c->machine);
	if (find_model(c, error) < 0 || begin(c, SMALTI_F32, error) < 0 ||
	    (o->measured && smalti_simulation_measure(o->measured, error) < 0))
		return -1;
	session.policy = o->sched;
	session.cpus = o->cpus ? o->cpus : c->machine.cpu.count;
	session.cuda = o->gpus;
	session.gpu_memory_limit = o->gpu_memory_limit;
	session.trace = o->trace;
	model.directory = c->directory;
	model.precision = (enum smalti_precision)o->precision;
	c->session = smalti_session_open(&session, error);
	c->model = c->session ? smalti_model_open(c->session, &model, error) : NULL;
	if (!c->model || begin(c, c->model->vae->compute, error) < 0)
		return -1;
	expect_denoising(c);
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
	struct simulated_case *c = user;
	if (status < 0 && !c->failure.code)
		c->failure = *cause;
}

static int make_images(struct simulated_case *c, struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_image_callbacks callbacks = {.user = c, .rows = on_rows, .done = on_done};
	struct smalti_batch *batch = smalti_batch_open(c->model, error);
	int status = batch ? 0 : -1;
	for (int64_t image = 0; image < c->options->request.images && status == 0; image++)
		status = smalti_batch_submit(batch, plan, image, &callbacks, error);
	smalti_batch_close(batch);
	return status == 0 && c->failure.code ? smalti_pass(error, &c->failure) : status;
}

static int simulate(struct simulated_case *c, struct smalti_error *error)
{
	struct smalti_request request = c->options->request;
	struct smalti_plan *plan = smalti_request_resolve(c->model, &request, error);
	int status = plan ? make_images(c, plan, error) : -1;
	struct smalti_simulation *simulation = status == 0 ? smalti_simulation_take(c->session, error) : NULL;
	if (simulation && smalti_needs(c->model, plan, c->options->blocking, simulation, error) < 0) {
		smalti_simulation_free(simulation);
		simulation = NULL;
	}
	status = simulation ? smalti_case_print(c->options, smalti_plan_strategy(plan), simulation,
						c->machine.name, error)
			    : -1;
	smalti_simulation_free(simulation);
	smalti_plan_free(plan);
	return status;
}

int smalti_case_run(const struct smalti_simulate_options *options, struct smalti_error *error)
{
	struct simulated_case c = {.options = options};
	int status = open_all(&c, error);
	if (status == 0)
		status = simulate(&c, error);
	smalti_model_close(c.model);
	if (smalti_session_close(c.session, status == 0 ? error : NULL) < 0)
		status = -1;
	free(c.directory);
	return status;
}
