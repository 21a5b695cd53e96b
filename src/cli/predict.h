/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "cli/progress.h"
#include "cli/simulate.h"

/* `--predict MACHINE` of a command that computes: when the work is done, it is simulated on that machine, and
 * what this gives is shown beside what was measured. */

#define SMALTI_PREDICT_ROW(type)                                                                             \
	{                                                                                                    \
		SMALTI_STRING(type, predict), "predict", 0, "MACHINE",                                       \
		    "at the end, simulate the same work as smalti simulate --machine MACHINE does, and "     \
		    "show the "                                                                              \
		    "predicted time beside the measured one"                                                 \
	}

/* An option of the command; simulations do not know it. */
struct smalti_unpredicted {
	const char *name;
	bool given;
};

/* Fails if there is no such machine, no simulator, or an option that it does not know, or if the machine has
 * fewer GPUs than there are ranks. A machine NULL was not asked for; ranks other than 0 do not simulate. */
int smalti_predict_check(const char *machine, const struct smalti_unpredicted *options, int count,
			 struct smalti_error *error);

/* Returns what is simulated where nothing else is said, on a machine with the session's workers and policy.
 * Of several ranks each is a GPU of the machine. */
struct smalti_simulate_options smalti_predict_begin(const char *machine, const struct smalti_session *session,
						    const struct smalti_session_options *options);

/* Simulates the work of a command, which took so many seconds (of training, a step did). Adds
 * {"t":SECONDS,"predicted":{..}} to the run's log (NULL: none); with `says`, shows the prediction, too.
 * Returns
 * {"machine":NAME,"seconds":PREDICTED,"measured":SECONDS}; free with cJSON_Delete(). NULL: it has said why
 * there is none. */
cJSON *smalti_predict(const struct smalti_simulate_options *work, double measured, const char *log, bool says,
		      const struct smalti_command *command, struct smalti_progress *progress);
