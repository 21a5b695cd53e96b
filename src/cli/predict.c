/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/predict.h"
#include "base/file.h"
#include "cli/numbers.h"
#include "cli/signals.h"
#include "cli/simulator.h"
#include "ranks/ranks.h"
#include "rt/session.h"
#include "simulation/machine.h"

int smalti_predict_check(const char *machine, const struct smalti_unpredicted *options, int count,
			 struct smalti_error *error)
{
	struct smalti_simulated_machine read;
	char path[PATH_MAX];
	if (!machine || smalti_ranks_own() > 0) /* rank 0 simulates */
		return 0;
	for (int i = 0; i < count; i++)
		if (options[i].given)
			return smalti_fail(error, SMALTI_EINVAL,
					   "--predict: simulations do not know %s: leave one of them out",
					   options[i].name);
	if (smalti_machine_read(machine, &read, error) < 0)
		return -1;
	if (smalti_ranks_count() > smalti_machine_gpus(&read) && smalti_ranks_count() > 1)
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "--predict: %d processes, but %s has %lld places: expected one for each, as "
		    "'smalti simulate --calibrate' describes them from a --trace of such processes",
		    smalti_ranks_count(), read.name, (long long)smalti_machine_gpus(&read));
	return smalti_simulator_find(path, error);
}

struct smalti_simulate_options smalti_predict_begin(const char *machine, const struct smalti_session *session,
						    const struct smalti_session_options *options)
{
	struct smalti_simulate_options work =
	    *(const struct smalti_simulate_options *)smalti_simulate_command.defaults;
	work.machine = machine;
	work.gpus = 0;
	for (int worker = 0; worker < session->workers; worker++)
		*(session->devices[worker] ? &work.gpus : &work.cpus) += 1;
	if (smalti_ranks_count() > 1) {
		work.gpus = smalti_ranks_count();
		work.cpus = 1;
	}
	work.gpu_memory_limit = options->gpu_memory_limit;
	work.sched = options->policy;
	return work;
}

static cJSON *simulate(const struct smalti_simulate_options *work, struct smalti_error *error)
{
	struct smalti_simulated_machine machine;
	if (smalti_machine_read(work->machine, &machine, error) < 0)
		return NULL;
	return smalti_simulator_run(work, work->sched, &machine, error);
}

static void print(const cJSON *prediction, const char *what, struct smalti_progress *progress)
{
	char predicted[SMALTI_NUMBER], measured[SMALTI_NUMBER];
	const double seconds = smalti_json_number(prediction, "seconds"),
		     took = smalti_json_number(prediction, "measured");
	smalti_progress_print(progress, "%s: %s predicted on %s, %s measured (%+.1f %%)", what,
			      smalti_number_seconds(seconds, predicted),
			      cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(prediction, "machine")),
			      smalti_number_seconds(took, measured), 100 * (seconds / took - 1));
}

static int add_to_log(const cJSON *prediction, const char *path, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *line = cJSON_CreateObject();
	cJSON_AddNumberToObject(line, "t", smalti_json_number(prediction, "measured"));
	cJSON_AddItemToObject(line, "predicted", cJSON_Duplicate(prediction, true));
	SCOPED(free) char *text = cJSON_PrintUnformatted(line);
	SCOPED(fclose) FILE *log = fopen(path, "ae");
	if (text && log && fprintf(log, "%s\n", text) > 0 && fflush(log) == 0)
		return 0;
	return smalti_fail_errno(error, "%s: cannot be written, so it lacks the prediction", path);
}

cJSON *smalti_predict(const struct smalti_simulate_options *work, double measured, const char *log, bool says,
		      const struct smalti_command *command, struct smalti_progress *progress)
{
	const bool training = work->job == SMALTI_SIMULATED_TRAINING;
	struct smalti_error error = SMALTI_NO_ERROR;
	SCOPED(cJSON_Delete) cJSON *outcome = simulate(work, &error);
	if (!outcome) {
		smalti_signals_blame(&error);
		smalti_progress_print(progress, "%s: nothing is predicted: %s", command->name, error.message);
		return NULL;
	}
	cJSON *prediction = cJSON_CreateObject();
	cJSON_AddItemToObject(prediction, "machine",
			      cJSON_DetachItemFromObjectCaseSensitive(outcome, "machine"));
	cJSON_AddNumberToObject(prediction, "seconds",
				smalti_json_number(outcome, training ? "step" : "makespan"));
	cJSON_AddNumberToObject(prediction, "measured", measured);
	if (log && add_to_log(prediction, log, &error) < 0)
		smalti_progress_print(progress, "%s: %s", command->name, error.message);
	if (says)
		print(prediction, training ? "a step" : "all", progress);
	return prediction;
}
