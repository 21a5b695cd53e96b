/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/devices_alone.h"

#include "ranks/ranks.h"
#include "rt/places.h"
#include "rt/task_message.h"

#include <starpu.h>

/* The least gain. A task that a CPU takes delays the chain of tasks behind it: this is what it may cost. */
static const double min_gain = 0.05;

/* Returns what CPUs add to the devices' speed, as a share of it. */
static double gain(const struct smalti_session *session)
{
	double cpus = 0, devices = 0;
	for (int worker = 0; worker < session->workers; worker++)
		*(session->devices[worker] ? &devices : &cpus) += session->speeds[worker];
	return cpus / devices;
}

void smalti_devices_alone_open(struct smalti_session *session, bool policy_chosen)
{
	session->devices_lead =
	    session->reproducible || (session->device_counts.sum > 0 && gain(session) < min_gain);
	session->devices_alone = session->reproducible || (session->devices_lead && !policy_chosen);
}

bool smalti_devices_lead(const struct smalti_session *session)
{
	return session->devices_lead;
}

bool smalti_devices_alone(const struct smalti_session *session)
{
	return session->devices_alone && smalti_ranks_count() == 1;
}

/* Tells whether a worker is a device that has room for the task. A lost device counts only for reproducible
 * results, which fail with it. */
static bool fits_device(const struct smalti_session *session, const struct starpu_task *task, int worker)
{
	const unsigned node = starpu_worker_get_memory_node((unsigned)worker);
	return session->devices[worker] && smalti_task_fits(task, node) &&
	       (session->reproducible || !smalti_lost_has(&session->lost, node));
}

void smalti_devices_alone_restrict(const struct smalti_session *session, struct starpu_task *task)
{
	if (!session->devices_alone || task->workerids || task->where == STARPU_CPU)
		return;
	for (int worker = 0; worker < session->workers; worker++)
		if (fits_device(session, task, worker)) {
			task->where &= ~(uint32_t)STARPU_CPU;
			return;
		}
	if (session->reproducible)
		task->where = STARPU_CPU;
}

int smalti_devices_alone_place(const struct smalti_session *session)
{
	const bool sole = smalti_devices_alone(session) && session->device_counts.sum == 1 &&
			  smalti_places_count(session->places) == 2;
	return sole ? 1 : SMALTI_ANYWHERE;
}
