/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/simulate.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/signals.h"
#include "cli/simulate_print.h"
#include "cli/simulator.h"
#include "jobs/precision.h"
#include "rt/op.h"
#include "simulation/calibrate.h"
#include "simulation/machine.h"

const char *const smalti_simulated_jobs[] = {
    [SMALTI_SIMULATED_IMAGES] = "",
    [SMALTI_SIMULATED_TRAINING] = "train",
    [SMALTI_SIMULATED_EXTRACTION] = "extract",
    NULL,
};

/* Reads the next of the comma-separated names; false: there is none. */
static bool next_policy(const char **list, char policy[SMALTI_POLICY_NAME])
{
	const size_t length = strcspn(*list, ",");
	if (length == 0)
		return false;
	snprintf(policy, SMALTI_POLICY_NAME, "%.*s", (int)length, *list);
	*list += length + ((*list)[length] == ',');
	return true;
}

int smalti_simulate_operands(struct smalti_simulate_options *options, int count, char **operands,
			     struct smalti_error *error)
{
	enum { TRAINING_STEPS = 2 }; /* the first one also brings the weights */
	for (int job = SMALTI_SIMULATED_TRAINING; count > 0 && smalti_simulated_jobs[job]; job++)
		if (strcmp(operands[0], smalti_simulated_jobs[job]) == 0)
			options->job = (enum smalti_simulated_job)job;
	const int taken = options->job != SMALTI_SIMULATED_IMAGES;
	if (options->job == SMALTI_SIMULATED_TRAINING && !options->given.steps)
		options->request.steps = TRAINING_STEPS;
	if (count > taken)
		return smalti_fail(error, SMALTI_EINVAL,
				   "unexpected operand '%.99s': expected train or extract, or none",
				   operands[taken]);
	return 0;
}

/* Refuses options of other jobs. */
static int check_job(const struct smalti_simulate_options *options, struct smalti_error *error)
{
	enum {
		IMAGES = 1 << SMALTI_SIMULATED_IMAGES,
		TRAINING = 1 << SMALTI_SIMULATED_TRAINING,
		EXTRACTION = 1 << SMALTI_SIMULATED_EXTRACTION
	};
	const struct {
		const char *name;
		bool given;
		unsigned jobs;
	} limited[] = {
	    {"--prompt", options->given.prompt, IMAGES},
	    {"--images", options->given.images, IMAGES},
	    {"--steps", options->given.steps, IMAGES | TRAINING},
	    {"--guidance", options->given.guidance, IMAGES},
	    {"--scheduler", options->request.scheduler != NULL, IMAGES},
	    {"--tile-tokens", options->request.tile_tokens != 0, IMAGES | TRAINING},
	    {"--tile-rows", options->request.tile_rows != 0, IMAGES},
	    {"--grain", options->given.grain, IMAGES},
	    {"--caption-tokens", options->given.caption_tokens, TRAINING | EXTRACTION},
	    {"--items", options->given.items, EXTRACTION},
	    {"--img-size", options->given.image_size, EXTRACTION},
	    {"--t5", options->extraction.t5, EXTRACTION},
	    {"--vae", options->extraction.vae, EXTRACTION},
	    {"--batch", options->given.batch, TRAINING},
	    {"--lanes", options->given.lanes, TRAINING},
	    {"--micro", options->given.micro, TRAINING},
	    {"--recompute", options->given.recomputation, TRAINING},
	    {"--optimizer", options->given.optimizer, TRAINING},
	    {"--lora-rank", options->training.lora_rank > 0, TRAINING},
	    {"--lora-targets", options->training.lora_targets != NULL, TRAINING},
	    {"--strategy", options->request.strategy, IMAGES | TRAINING},
	    {"--shares", options->request.shares, IMAGES | TRAINING},
	    {"--blocking", options->blocking, IMAGES | TRAINING},
	};
	static const char *const names[] = {[SMALTI_SIMULATED_IMAGES] = "images",
					    [SMALTI_SIMULATED_TRAINING] = "training",
					    [SMALTI_SIMULATED_EXTRACTION] = "extraction"};
	for (size_t i = 0; i < COUNT_OF(limited); i++)
		if (limited[i].given && !(limited[i].jobs & 1u << options->job))
			return smalti_fail(error, SMALTI_EINVAL, "%s: a simulation of %s has no such option",
					   limited[i].name, names[options->job]);
	return 0;
}

static int check(const struct smalti_simulate_options *options, struct smalti_error *error)
{
	if (options->calibrate && !options->measured)
		return smalti_fail(error, SMALTI_EINVAL,
				   "--calibrate needs --measured, the traces of the machine");
	if (options->calibrate && options->machine)
		return smalti_fail(error, SMALTI_EINVAL,
				   "--calibrate describes the machine of the traces, not one of --machine");
	if (!options->machine && !options->calibrate)
		return smalti_fail(error, SMALTI_EINVAL,
				   "--machine is missing; --machines lists those that there are");
	if (options->trace && options->sched && strchr(options->sched, ','))
		return smalti_fail(error, SMALTI_EINVAL, "--trace is of one simulation: name one policy");
	return check_job(options, error);
}

static int simulate_one(const struct smalti_simulate_options *options, const char *policy,
			const struct smalti_simulated_machine *machine, struct smalti_error *error)
{
	const double began = smalti_now();
	cJSON *outcome = smalti_simulator_run(options, policy, machine, error);
	if (!outcome)
		return -1;
	if (options->json)
		return smalti_json_print(outcome)
			   ? 0
			   : smalti_fail(error, SMALTI_EIO, "standard output cannot be written");
	const int status = smalti_simulation_print(outcome, smalti_now() - began, stdout, error);
	cJSON_Delete(outcome);
	return status;
}

/* Refuses --blocking if a policy places tasks as they come: it does not know what they will receive. */
static int check_blocking(const struct smalti_simulate_options *options,
			  const struct smalti_simulated_machine *machine, struct smalti_error *error)
{
	const int64_t gpus = options->gpus < 0 ? smalti_machine_gpus(machine) : options->gpus;
	if (!options->blocking || options->request.strategy || options->request.shares || gpus <= 1)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "--blocking needs --strategy, which says what each GPU receives");
}

static int simulate(const struct smalti_simulate_options *options, struct smalti_error *error)
{
	struct smalti_simulated_machine machine;
	char policy[SMALTI_POLICY_NAME];
	if (smalti_machine_read(options->machine, &machine, error) < 0 ||
	    check_blocking(options, &machine, error) < 0)
		return -1;
	if (options->blocking)
		smalti_machine_block(&machine);
	const char *list = options->sched;
	smalti_signals_catch();
	if (!list)
		return simulate_one(options, NULL, &machine, error);
	while (next_policy(&list, policy))
		if (simulate_one(options, policy, &machine, error) < 0)
			return -1;
	return 0;
}

/* Refuses a precision that the job has not, and traces whose products have two: what of their time each took
 * is not in them. */
static int check_precision(const struct smalti_simulate_options *options, struct smalti_error *error)
{
	const enum smalti_precision precision = (enum smalti_precision)options->precision;
	if (options->job != SMALTI_SIMULATED_IMAGES)
		return smalti_precision_check(precision, SMALTI_PRECISION_TF32, error);
	if (!options->calibrate || !smalti_precision_is_w8a8(precision))
		return 0;
	return smalti_fail(
	    error, SMALTI_EUNSUPPORTED,
	    "--calibrate: with --precision %s products are of two precisions: give traces of f32, bf16 "
	    "or f16, and add the rate of products in int8 to the machine",
	    smalti_precisions[precision]);
}

enum smalti_exit smalti_simulate_run(void *values, int count, char **operands)
{
	struct smalti_simulate_options *options = values;
	struct smalti_error error = SMALTI_NO_ERROR;
	int status = 0;
	if (options->machines)
		status = smalti_machines_print(stdout, &error);
	else if (smalti_simulate_operands(options, count, operands, &error) < 0 ||
		 check_precision(options, &error) < 0 || check(options, &error) < 0)
		status = -1;
	else if (options->calibrate)
		status = smalti_calibrate(options->measured, smalti_op_work, options->precision,
					  options->calibrate, &error);
	else
		status = simulate(options, &error);
	if (status < 0)
		smalti_signals_blame(&error);
	return status ? smalti_command_fail(&smalti_simulate_command, &error) : smalti_finish_stdout();
}
