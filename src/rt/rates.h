/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The speeds of workers, or machines, on tasks that all of them have run: small tasks are slower than large
 * ones. */

/* The time of similar tasks. */
struct smalti_task_time {
	uint64_t key;
	double flops;   /* of one task */
	double samples; /* number of measurements */
	double seconds; /* per task */
};
/* Everything that is known of one worker or machine; each key is there once. */
struct smalti_task_list {
	int64_t count;
	struct smalti_task_time *time;
};

void smalti_task_list_free(struct smalti_task_list *list);

/* Finds the operations a second of each, on the tasks that all have; without common tasks, on its own. 0:
 * nothing is known. */
void smalti_rates_compare(const struct smalti_task_list *lists, int count, double *rates);
/* Replaces 0 by the speed on paper, times the others' ratio of measured to paper speed. Returns whether any
 * rate is known. */
bool smalti_rates_complete(const double *on_paper, int count, double *rates);
/* Makes the list of workers side by side: the tasks that all have, with the time per task of all together. -1
 * without memory. */
int smalti_rates_together(const struct smalti_task_list *lists, int count, struct smalti_task_list *together,
			  struct smalti_error *error);
