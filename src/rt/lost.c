/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/lost.h"
#include "rt/session.h"
#include "rt/task_message.h"

#include <starpu.h>

static struct smalti_session *watched; /* StarPU has one set of callbacks, without a user pointer */

static void name_device(unsigned node, char *name, size_t bytes)
{
	snprintf(name, bytes, "%s", "");
	for (unsigned worker = 0; worker < starpu_worker_get_count() && !*name; worker++)
		if (starpu_worker_get_memory_node(worker) == node)
			starpu_worker_get_name((int)worker, name, bytes);
	if (!*name)
		snprintf(name, bytes, "the device of memory %u", node);
}

static void lose_device(unsigned node, const char *cause)
{
	char name[128];
	struct smalti_lost *lost = &watched->lost;
	name_device(node, name, sizeof(name));
	smalti_fail(
	    &lost->cause[node], SMALTI_ENODEV,
	    "%s is lost: %s; what it held is gone: repeat what failed, and leave the device out if it "
	    "is lost again",
	    name, cause);
	atomic_fetch_or(&lost->nodes, 1u << node);
}

static void lose_data(starpu_data_handle_t handle, unsigned from, unsigned to)
{
	(void)to;
	struct smalti_lost *lost = &watched->lost;
	const int64_t number = (int64_t)(intptr_t)starpu_data_get_user_data(handle);
	HOLD_MUTEX(&lost->mutex);
	for (struct smalti_task_group *group = lost->groups; group; group = group->next)
		if (group->number == number)
			smalti_lost_fails(group, from);
}

void smalti_lost_watch(struct smalti_session *session)
{
	watched = session;
#ifdef STARPU_LOST_DEVICES
	const struct starpu_lost_callbacks callbacks = {lose_device, lose_data};
	starpu_lost_set_callbacks(session ? &callbacks : NULL);
#else
	(void)lose_device, (void)lose_data;
#endif
}

void smalti_lost_open(struct smalti_lost *lost)
{
	pthread_mutex_init(&lost->mutex, NULL);
}

void smalti_lost_close(struct smalti_lost *lost)
{
	pthread_mutex_destroy(&lost->mutex);
}

void smalti_lost_add(struct smalti_lost *lost, struct smalti_task_group *task_group)
{
	HOLD_MUTEX(&lost->mutex);
	task_group->number = ++lost->groups_made;
	task_group->next = lost->groups;
	lost->groups = task_group;
}

void smalti_lost_remove(struct smalti_lost *lost, const struct smalti_task_group *task_group)
{
	HOLD_MUTEX(&lost->mutex);
	struct smalti_task_group **at = &lost->groups;
	while (*at != task_group)
		at = &(*at)->next;
	*at = task_group->next;
}

bool smalti_lost_has(const struct smalti_lost *lost, unsigned memory_node)
{
	enum { BITS = 32 };
	return memory_node < BITS && atomic_load(&lost->nodes) >> memory_node & 1;
}

bool smalti_lost_fails(struct smalti_task_group *task_group, unsigned memory_node)
{
	const struct smalti_lost *lost = &task_group->session->lost;
	if (!smalti_lost_has(lost, memory_node))
		return false;
	smalti_task_group_fail(task_group, &lost->cause[memory_node]);
	return true;
}

int smalti_lost_check(const struct smalti_lost *lost, struct smalti_error *error)
{
	for (unsigned node = 0; node < SMALTI_MAX_NODES; node++)
		if (smalti_lost_has(lost, node))
			return smalti_pass(error, &lost->cause[node]);
	return 0;
}

/* Returns the devices that the task avoids: all lost ones, if another worker can run it. */
static uint32_t avoided(const struct smalti_lost *lost, struct starpu_task *task)
{
	const uint32_t nodes = atomic_load(&lost->nodes);
	for (unsigned worker = 0; nodes && worker < starpu_worker_get_count(); worker++)
		if (!(nodes >> starpu_worker_get_memory_node(worker) & 1) &&
		    starpu_worker_can_execute_task(worker, task, 0))
			return nodes;
	return 0;
}

void smalti_lost_prepare(const struct smalti_lost *lost, struct starpu_task *task)
{
	struct smalti_message *message = task->cl_arg;
	message->avoided = avoided(lost, task);
}

bool smalti_lost_avoids(const struct smalti_lost *lost, struct starpu_task *task, unsigned memory_node)
{
	const struct smalti_message *message = task->cl_arg;
	if (!smalti_lost_has(lost, memory_node))
		return false;
	return (lost->reconsiders ? avoided(lost, task) : message->avoided) >> memory_node & 1;
}
