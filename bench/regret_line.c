/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/regret.h"

#include <math.h>

const struct smalti_bench_column smalti_regret_columns[SMALTI_REGRET_COLUMNS] = {
    {"seconds", "seconds", 1, "%.4f"},
    {"replayed", "replayed", 1, "%.4f"},
    {"planned", "planned", 1, "%.4f"},
    {"bound", "bound", 1, "%.4f"},
    {"inserted_bound", "inserted", 1, "%.4f"},
    {"gap", "% gap", 100, "%.1f"},
    {"regret_run", "run", 1, "%.4f"},
    {"regret_start", "start", 1, "%.4f"},
    {"regret_end", "end", 1, "%.4f"},
    {"regret_transfer", "transfer", 1, "%.4f"},
    {"regret_order", "order", 1, "%.4f"},
    {"regret_place", "place", 1, "%.4f"},
    {"tasks", "tasks", 1, "%.0f"},
};

void smalti_regret_line(const struct smalti_task_schedule *run, const struct smalti_regret *regret,
			struct smalti_bench_value line[static SMALTI_REGRET_COLUMNS])
{
	const double planned = regret->plan->makespan,
		     values[] = {run->makespan,    regret->replayed,
				 planned,          regret->bound,
				 regret->inserted, planned / fmax(regret->bound, regret->inserted) - 1};
	int column = 0;
	for (size_t i = 0; i < COUNT_OF(values); i++)
		line[column++] = (struct smalti_bench_value){values[i], NULL};
	for (int cause = 0; cause < SMALTI_REGRET_CAUSES; cause++)
		line[column++] = (struct smalti_bench_value){regret->seconds[cause], NULL};
	line[column] = (struct smalti_bench_value){(double)run->count, NULL};
}
