/* SPDX-License-Identifier: Apache-2.0 */
#include "simulator/case.h"
#include "bench/make_model.h"
#include "jobs/precision.h"
#include "rt/session.h"
#include "simulation/chosen.h"

/* Makes a geometry's model, without weights, or takes a named one. */
static int find_model(struct smalti_case *c, struct smalti_error *error)
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

int smalti_case_precision(struct smalti_case *c, enum smalti_dtype convolutions, struct smalti_error *error)
{
	const enum smalti_precision wanted = (enum smalti_precision)c->options->precision,
				    precision = smalti_precision_of_rest(wanted);
	const int lower = convolutions == SMALTI_F32 && precision != SMALTI_PRECISION_TF32
			      ? SMALTI_PRECISION_F32
			      : (int)precision;
	const struct smalti_work_precisions precisions = {.of = {[SMALTI_PRODUCTS] = (int)precision,
								 [SMALTI_CONVOLUTIONS] = lower,
								 [SMALTI_ATTENTION] = (int)precision},
							  .int8 = smalti_precision_is_w8a8(wanted)};
	return smalti_simulation_open(&c->machine, &precisions, error);
}

void smalti_case_expect(const struct smalti_case *c, int64_t width, double tokens)
{
	const double flops[SMALTI_WORKS] = {
	    [SMALTI_PRODUCTS] = 28 * (double)width, [SMALTI_ATTENTION] = 4 * tokens};
	smalti_simulation_expect(c->session, flops);
}

static int open_session(struct smalti_case *c, struct smalti_error *error)
{
	const struct smalti_simulate_options *o = c->options;
	struct smalti_session_options session;
	smalti_session_defaults(&session);
	if (smalti_machine_read(o->machine, &c->machine, error) < 0)
		return -1;
	if (o->blocking)
		smalti_machine_block(&c->machine);
	if (find_model(c, error) < 0 || smalti_case_precision(c, SMALTI_F32, error) < 0 ||
	    (o->measured && smalti_simulation_measure(o->measured, error) < 0))
		return -1;
	session.policy = o->sched;
	session.cpus = o->cpus ? o->cpus : c->machine.cpu.count;
	session.cuda = o->gpus;
	session.gpu_memory_limit = o->gpu_memory_limit;
	session.trace = o->trace;
	c->session = smalti_session_open(&session, error);
	return c->session ? 0 : -1;
}

static int (*const jobs[])(struct smalti_case *c, struct smalti_error *error) = {
    [SMALTI_SIMULATED_IMAGES] = smalti_case_images,
    [SMALTI_SIMULATED_TRAINING] = smalti_case_training,
    [SMALTI_SIMULATED_EXTRACTION] = smalti_case_extraction,
};

int smalti_case_run(const struct smalti_simulate_options *options, struct smalti_error *error)
{
	struct smalti_case c = {.options = options};
	int status = open_session(&c, error);
	if (status == 0)
		status = jobs[options->job](&c, error);
	if (smalti_session_close(c.session, status == 0 ? error : NULL) < 0)
		status = -1;
	free(c.directory);
	return status;
}
