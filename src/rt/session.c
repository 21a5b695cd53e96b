/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/session.h"
#include "base/clock.h"
#include "ranks/ranks.h"
#include "rt/counting.h"
#include "rt/device_use.h"
#include "rt/places.h"
#include "rt/slowdown.h"

#include <starpu.h>

int smalti_session_processors(const struct smalti_session *session)
{
	const struct smalti_machine_cpus *cpus = &session->cpus;
	return session->sequential ? 1 : cpus->allowed_cores * (cpus->threads / cpus->cores);
}

void smalti_session_sleep(const struct smalti_session *session)
{
	if (!session->sequential)
		starpu_pause();
}

void smalti_session_wake(const struct smalti_session *session)
{
	if (!session->sequential)
		starpu_resume();
}

int smalti_session_check(const struct smalti_session *session, struct smalti_error *error)
{
	if (session->process == getpid())
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "the session is process %ld's, and its threads are not here: open sessions after fork()",
	    (long)session->process);
}

int smalti_session_priority(const struct smalti_session *session, int64_t wanted)
{
	if (wanted < session->lowest_priority)
		return session->lowest_priority;
	return wanted > session->highest_priority ? session->highest_priority : (int)wanted;
}

int smalti_session_place_count(const struct smalti_session *session)
{
	if (session->counting)
		return session->counting->places;
	if (smalti_ranks_count() > 1)
		return smalti_ranks_count();
	return session->sequential ? 1 : smalti_places_count(session->places);
}

void smalti_session_worker_name(int worker, char name[SMALTI_WORKER_NAME])
{
	starpu_worker_get_name(worker, name, SMALTI_WORKER_NAME);
}

void smalti_session_place_name(const struct smalti_session *session, int place, char name[SMALTI_WORKER_NAME])
{
	if (smalti_ranks_count() > 1)
		snprintf(name, SMALTI_WORKER_NAME, "rank %d", place);
	else
		snprintf(name, SMALTI_WORKER_NAME, "CPUs");
	for (int worker = 0; place > 0 && smalti_ranks_count() == 1 && worker < session->workers; worker++)
		if (starpu_worker_get_memory_node((unsigned)worker) ==
		    smalti_places_node(session->places, place))
			smalti_session_worker_name(worker, name);
}

void smalti_session_add_busy(struct smalti_session *session, int worker, double seconds)
{
	atomic_fetch_add_explicit(&session->busy[worker], (int64_t)(1e9 * seconds), memory_order_relaxed);
}

bool smalti_session_slows(const struct smalti_session *session, int worker)
{
	return session->slowdown[worker] > 1;
}

void smalti_session_slow(const struct smalti_session *session, int worker, double seconds)
{
	smalti_slowdown_wait(session->slowdown[worker], seconds);
}

double smalti_session_device_ended(struct smalti_session *session, int worker, double began)
{
	const double now = smalti_now(), before = session->ended[worker];
	const double seconds = now - (began > before ? began : before);
	session->ended[worker] = now;
	smalti_session_add_busy(session, worker, seconds);
	return seconds;
}

int smalti_session_choose_tf32(struct smalti_session *session, bool tf32, struct smalti_error *error)
{
	HOLD(&session->throttle.mutex);
	if (session->tf32 == (tf32 ? SMALTI_TF32_NO : SMALTI_TF32_YES))
		return smalti_fail(error, SMALTI_EINVAL,
				   "a session's models compute in tf32 all or none: open another session for "
				   "this one");
	for (int worker = 0; session->tf32 == SMALTI_TF32_OPEN && worker < session->workers; worker++)
		if (smalti_session_device(session, worker))
			smalti_device_set_tf32(session->devices[worker], tf32);
	session->tf32 = tf32 ? SMALTI_TF32_YES : SMALTI_TF32_NO;
	return 0;
}

struct smalti_device *smalti_session_device(const struct smalti_session *session, int worker)
{
	return session->devices ? session->devices[worker] : NULL;
}

double smalti_session_busy(const struct smalti_session *session, int worker)
{
	return 1e-9 * (double)atomic_load_explicit(&session->busy[worker], memory_order_relaxed);
}
