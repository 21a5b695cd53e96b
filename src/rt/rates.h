/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* How fast workers, or machines, are on tasks that they have in common, since small tasks are slower than
 * large ones. */

/* Tasks that are alike. */
struct smalti_task_time {
	uint64_t key;
	double flops;   /* of one */
	double samples; /* that were measured */
	double seconds; /* that one takes */
};
/* All that is known of one worker or machine, each key once. */
struct smalti_task_list {
	int64_t count;
	struct smalti_task_time *time;
};

void smalti_task_list_free(struct smalti_task_list *list);

/* Operations a second of each, on the tasks that all have; where there are none, on what it has. 0: nothing.
 */
void smalti_rates_compare(const struct smalti_task_list *lists, int count, double *rates);
/* What is 0 becomes the speed on paper, as many times as that was wrong for those that are known. Whether any
 * is. */
bool smalti_rates_complete(const double *on_paper, int count, double *rates);
/* What workers do side by side: the tasks that all have, in the time that they take for one together. -1
 * without memory. */
int smalti_rates_together(const struct smalti_task_list *lists, int count, struct smalti_task_list *together,
			  struct smalti_error *error);
