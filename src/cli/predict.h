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

/* Fails if there is no such machine, no simulator, or an option that it does not know. A machine NULL was not
 * asked for. */
int smalti_predict_check(const char *machine, const struct smalti_unpredicted *options, int count,
			 struct smalti_error *error);

/* Returns what is simulated where nothing else is said, on a machine with the session's workers and policy.
 */
struct smalti_simulate_options smalti_predict_begin(const char *machine, const struct smalti_session *session,
						    const struct smalti_session_options *options);

/* A run whose work was done. */
struct smalti_predicted {
	const char *command;
	struct smalti_progress *progress; /* messages go there */
	bool says;                        /* the prediction, too */
	const char *log; /* the run's, to which {"t":SECONDS,"predicted":{..}} is added; NULL: none */
	double measured; /* seconds: of a step of training, of all of other jobs */
};

/* Simulates the work. Returns {"machine":NAME,"seconds":PREDICTED,"measured":SECONDS}; free with
 * cJSON_Delete(). NULL: it has said why there is none. */
cJSON *smalti_predict(const struct smalti_simulate_options *work, const struct smalti_predicted *run);
