/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/report.h"
#include "bench/timetable.h"

/* What a run lost against the best schedule that was found for its tasks: the regret, split by cause. The
 * causes are differences between schedules that have one thing after the other changed. Idle time before the
 * workers' first tasks and after their last ones is a cause of its own, and is left out of the others. */
enum smalti_regret_cause {
	SMALTI_REGRET_RUN,      /* the run, against its own order and workers in the model */
	SMALTI_REGRET_START,    /* workers had no task yet */
	SMALTI_REGRET_END,      /* workers had no task any more */
	SMALTI_REGRET_TRANSFER, /* tasks waited for data; less what they wait for it in the best schedule */
	SMALTI_REGRET_ORDER,    /* the order on the workers that were chosen */
	SMALTI_REGRET_PLACE,    /* the workers that were chosen */
	SMALTI_REGRET_CAUSES
};

struct smalti_regret {
	double seconds[SMALTI_REGRET_CAUSES]; /* their sum is the run's makespan less the plan's */
	double bound;                         /* of all schedules */
	double inserted; /* of all whose tasks are inserted no faster than in the run; NAN: unknown */
	struct smalti_timetable *plan;
	double replayed; /* the makespan of the run that did what was planned; set by the caller */
};

/* The columns of a report, and a line of it. */
enum { SMALTI_REGRET_COLUMNS = 7 + SMALTI_REGRET_CAUSES };
extern const struct smalti_bench_column smalti_regret_columns[SMALTI_REGRET_COLUMNS];
void smalti_regret_line(const struct smalti_task_schedule *run, const struct smalti_regret *regret,
			struct smalti_bench_value line[static SMALTI_REGRET_COLUMNS]);

/* Finds the best schedule and the regret of a measured and bounded run. Free the plan. */
int smalti_regret_find(const struct smalti_task_schedule *run, struct smalti_regret *regret,
		       struct smalti_error *error);
