/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks/ranks.h"

/* Without MPI there is one rank, which agrees with itself. */

int smalti_ranks_start(void (*give_up)(const struct smalti_error *cause), struct smalti_error *error)
{
	(void)give_up, (void)error;
	return 0;
}

bool smalti_ranks_launched(void)
{
	return false;
}

void smalti_ranks_stop(void)
{
}

int smalti_ranks_count(void)
{
	return 1;
}

int smalti_ranks_own(void)
{
	return 0;
}

int smalti_ranks_beside(void)
{
	return 1;
}

void smalti_ranks_give_up(const struct smalti_error *cause)
{
	(void)cause;
}

int smalti_ranks_agree(int status, struct smalti_ranks_vote *vote, struct smalti_error *error)
{
	(void)vote, (void)error;
	return status;
}

int64_t smalti_ranks_min(int64_t value)
{
	return value;
}

void smalti_ranks_broadcast(const void *message, int64_t bytes)
{
	(void)message, (void)bytes;
}

void *smalti_ranks_receive(int64_t *bytes, void (*idle)(void *user), void *user, struct smalti_error *error)
{
	(void)bytes, (void)idle, (void)user;
	smalti_fail(error, SMALTI_EUNSUPPORTED, "there is one process, which follows nobody");
	return NULL;
}

void smalti_ranks_gather(const void *own, int64_t bytes, void *all)
{
	memcpy(all, own, (size_t)bytes);
}

int smalti_ranks_links(struct smalti_link_fact *links, struct smalti_error *error)
{
	(void)links, (void)error; /* there are none */
	return 0;
}

struct smalti_ranks_outcomes *smalti_ranks_expect(int64_t job)
{
	(void)job;
	return NULL;
}

bool smalti_ranks_outcomes_received(struct smalti_ranks_outcomes **outcomes, struct smalti_error *error)
{
	(void)outcomes, (void)error;
	return true;
}

void smalti_ranks_report(int64_t job, const struct smalti_error *outcome)
{
	(void)job, (void)outcome;
}

void smalti_ranks_warn(int64_t job)
{
	(void)job;
}

int64_t smalti_ranks_warned(void)
{
	return -1;
}

void smalti_ranks_settle(void)
{
}

int smalti_ranks_open(double speed, bool bind, struct smalti_error *error)
{
	(void)speed, (void)bind, (void)error;
	return 0;
}

void smalti_ranks_close(void)
{
}

double smalti_ranks_speed(int place)
{
	(void)place;
	return 0;
}

int smalti_ranks_of(int place)
{
	(void)place;
	return 0;
}

void smalti_ranks_copy(void *handle, int from, int to, int priority)
{
	(void)handle, (void)from, (void)to, (void)priority;
}
