/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/rates.h"

void smalti_task_list_free(struct smalti_task_list *list)
{
	free(list->time);
	*list = (struct smalti_task_list){0, NULL};
}

static const struct smalti_task_time *find(const struct smalti_task_list *list, uint64_t key)
{
	for (int64_t i = 0; i < list->count; i++)
		if (list->time[i].key == key)
			return &list->time[i];
	return NULL;
}

static bool all_have(const struct smalti_task_list *lists, int count, uint64_t key)
{
	for (int i = 0; i < count; i++)
		if (!find(&lists[i], key))
			return false;
	return true;
}

/* Compares on the tasks that all have, as many as the first one did. */
static void compare(const struct smalti_task_list *lists, int count, double *rates)
{
	double flops = 0;
	memset(rates, 0, (size_t)count * sizeof(*rates));
	for (int64_t at = 0; at < lists[0].count; at++) {
		const struct smalti_task_time *task = &lists[0].time[at];
		if (!all_have(lists, count, task->key))
			continue;
		flops += task->samples * task->flops;
		for (int i = 0; i < count; i++)
			rates[i] += task->samples * find(&lists[i], task->key)->seconds;
	}
	for (int i = 0; i < count; i++)
		rates[i] = rates[i] > 0 ? flops / rates[i] : 0;
}

void smalti_rates_compare(const struct smalti_task_list *lists, int count, double *rates)
{
	if (count > 0)
		compare(lists, count, rates);
	for (int i = 0; i < count && (i > 0 || rates[0] == 0); i++)
		compare(&lists[i], 1, &rates[i]);
}

bool smalti_rates_complete(const double *on_paper, int count, double *rates)
{
	double reached = 0, expected = 0;
	for (int i = 0; i < count; i++) {
		reached += rates[i];
		expected += rates[i] > 0 ? on_paper[i] : 0;
	}
	for (int i = 0; i < count; i++)
		if (rates[i] == 0)
			rates[i] = on_paper[i] * (reached > 0 ? reached / expected : 1);
	return reached > 0;
}

int smalti_rates_together(const struct smalti_task_list *lists, int count, struct smalti_task_list *together,
			  struct smalti_error *error)
{
	const int64_t max = count > 0 ? lists[0].count : 0;
	*together = (struct smalti_task_list){0, smalti_calloc(max + 1, sizeof(*together->time), error)};
	if (!together->time)
		return -1;
	for (int64_t at = 0; at < max; at++) {
		struct smalti_task_time task = lists[0].time[at];
		double each_second = 0;
		if (!all_have(lists, count, task.key))
			continue;
		for (int i = 0; i < count; i++)
			each_second += 1 / find(&lists[i], task.key)->seconds;
		task.seconds = 1 / each_second;
		together->time[together->count++] = task;
	}
	return 0;
}
