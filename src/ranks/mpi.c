/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks/mpi.h"
#include "host/environment.h"
#include "ranks/ranks.h"

#include <time.h>

#include <starpu_mpi.h>

/* MPI and StarPU-MPI, one per process. */
static struct {
	int count, own, beside;
	MPI_Comm talk, data; /* of the inserting threads; of StarPU-MPI */
	bool open;           /* StarPU-MPI runs */
	void (*give_up)(const struct smalti_error *cause);
	double speed[SMALTI_MAX_RANKS];
	int64_t moves;          /* equal on all ranks: the tags */
	int64_t sent, received; /* jobs that fail: sent to each rank, received from all */
} ranks = {.count = 1, .beside = 1};

enum { PAUSE = 200000, BYTES_AT_ONCE = 1 << 30 }; /* nanoseconds */

/* Reads what mpirun, srun and their like set in the environment. */
bool smalti_ranks_launched(void)
{
	static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
	for (size_t i = 0; i < COUNT_OF(counts); i++)
		if (getenv(counts[i]) && strtol(getenv(counts[i]), NULL, 10) > 1)
			return true;
	return false;
}

static int count_beside(void)
{
	MPI_Comm machine;
	int count = 1;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
	MPI_Comm_size(machine, &count);
	MPI_Comm_free(&machine);
	return count;
}

int smalti_ranks_start(void (*give_up)(const struct smalti_error *cause), struct smalti_error *error)
{
	int provided = MPI_THREAD_SINGLE;
	if (!smalti_ranks_launched())
		return 0;
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS ||
	    provided != MPI_THREAD_MULTIPLE)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "MPI: expected one that several threads may call (MPI_THREAD_MULTIPLE)");
	ranks.give_up = give_up;
	MPI_Comm_dup(MPI_COMM_WORLD, &ranks.talk);
	MPI_Comm_dup(MPI_COMM_WORLD, &ranks.data);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks.count);
	MPI_Comm_rank(MPI_COMM_WORLD, &ranks.own);
	ranks.beside = count_beside();
	if (ranks.count > SMALTI_MAX_RANKS)
		return smalti_fail(error, SMALTI_EUNSUPPORTED, "MPI: expected %d processes at most, found %d",
				   SMALTI_MAX_RANKS, ranks.count);
	return 0;
}

void smalti_ranks_stop(void)
{
	int started = 0;
	MPI_Initialized(&started);
	if (!started)
		return;
	MPI_Comm_free(&ranks.talk);
	MPI_Comm_free(&ranks.data);
	MPI_Finalize();
	ranks.count = ranks.beside = 1;
	ranks.own = 0;
}

int smalti_ranks_count(void)
{
	return ranks.count;
}

int smalti_ranks_own(void)
{
	return ranks.own;
}

int smalti_ranks_beside(void)
{
	return ranks.beside;
}

/* Adds where a failure comes from. */
static void sign(struct smalti_error *error)
{
	char host[MPI_MAX_PROCESSOR_NAME];
	int length = 0;
	MPI_Get_processor_name(host, &length);
	smalti_error_prefix(error, "rank %d on %s", ranks.own, host);
}

void smalti_ranks_give_up(const struct smalti_error *cause)
{
	struct smalti_error signed_cause = *cause;
	if (ranks.count == 1 || (cause->code != SMALTI_ENOMEM && cause->code != SMALTI_ENODEV))
		return;
	sign(&signed_cause);
	if (ranks.give_up)
		ranks.give_up(&signed_cause);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/* Waits without taking the CPU from the workers, as a blocking call would. */
static void await(MPI_Request *request, void (*idle)(void *user), void *user)
{
	for (int done = 0; MPI_Test(request, &done, MPI_STATUS_IGNORE), !done;) {
		nanosleep(&(const struct timespec){.tv_nsec = PAUSE}, NULL);
		if (idle)
			idle(user);
	}
}

static void send(const void *bytes, int64_t count, int rank, int tag)
{
	MPI_Request request;
	MPI_Isend(bytes, (int)count, MPI_BYTE, rank, tag, ranks.talk, &request);
	await(&request, NULL, NULL);
}

/* Sends bytes from one rank to all. */
static void broadcast(void *bytes, int64_t count, int from, void (*idle)(void *user), void *user)
{
	for (char *at = bytes; count > 0;) {
		const int64_t now = smalti_min(count, BYTES_AT_ONCE);
		MPI_Request request;
		MPI_Ibcast(at, (int)now, MPI_BYTE, from, ranks.talk, &request);
		await(&request, idle, user);
		at += now;
		count -= now;
	}
}

/* Sets each value to the least of all ranks. */
static void find_min(int64_t *values, int count, void (*idle)(void *user), void *user)
{
	MPI_Request request;
	MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_INT64_T, MPI_MIN, ranks.talk, &request);
	await(&request, idle, user);
}

int64_t smalti_ranks_min(int64_t value)
{
	if (ranks.count > 1)
		find_min(&value, 1, NULL, NULL);
	return value;
}

int smalti_ranks_agree(int status, struct smalti_ranks_vote *vote, struct smalti_error *error)
{
	if (ranks.count == 1)
		return status;
	struct smalti_error first = SMALTI_NO_ERROR;
	const int64_t digest = vote ? (int64_t)vote->digest : 0;
	int64_t min[] = {status ? ranks.own : ranks.count, digest, ~digest, vote && vote->any ? -1 : 0};
	find_min(min, (int)COUNT_OF(min), vote ? vote->idle : NULL, vote ? vote->user : NULL);
	if (vote)
		vote->any = min[3] < 0;
	if (min[0] == ranks.count && min[1] != ~min[2])
		return smalti_fail(error, SMALTI_EINVAL,
				   "the ranks do not do the same: start one build with the same options, "
				   "model and environment on all of them");
	if (min[0] == ranks.count)
		return 0;
	if (min[0] == ranks.own && error)
		first = *error;
	if (min[0] == ranks.own && ranks.own > 0)
		sign(&first);
	broadcast(&first, sizeof(first), (int)min[0], NULL, NULL);
	if (error)
		*error = first;
	return -1;
}

void smalti_ranks_broadcast(const void *message, int64_t bytes)
{
	if (ranks.count == 1)
		return;
	broadcast(&bytes, sizeof(bytes), 0, NULL, NULL);
	broadcast((void *)(uintptr_t)message, bytes, 0, NULL, NULL);
}

void *smalti_ranks_receive(int64_t *bytes, void (*idle)(void *user), void *user, struct smalti_error *error)
{
	broadcast(bytes, sizeof(*bytes), 0, idle, user);
	void *message = smalti_calloc(*bytes, 1, error);
	if (message)
		broadcast(message, *bytes, 0, idle, user);
	return message;
}

void smalti_ranks_gather(const void *own, int64_t bytes, void *all)
{
	MPI_Request request;
	if (ranks.count == 1) {
		memcpy(all, own, (size_t)bytes);
		return;
	}
	MPI_Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, ranks.talk, &request);
	await(&request, NULL, NULL);
}

/* Outcomes of jobs */

struct smalti_ranks_outcomes {
	MPI_Request request[SMALTI_MAX_RANKS]; /* of each rank but 0 */
	struct smalti_error error[SMALTI_MAX_RANKS];
};

/* The tags of messages: MPI has tags to 32767 at least, and few jobs are active. */
enum { TAG_WARNING = INT16_MAX };
static int tag_of(int64_t job)
{
	return (int)(job % TAG_WARNING);
}

struct smalti_ranks_outcomes *smalti_ranks_expect(int64_t job)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (ranks.count == 1 || ranks.own > 0)
		return NULL;
	struct smalti_ranks_outcomes *outcomes = smalti_calloc(1, sizeof(*outcomes), &error);
	if (!outcomes)
		smalti_ranks_give_up(&error);
	for (int rank = 1; outcomes && rank < ranks.count; rank++)
		MPI_Irecv(&outcomes->error[rank], sizeof(struct smalti_error), MPI_BYTE, rank, tag_of(job),
			  ranks.talk, &outcomes->request[rank]);
	return outcomes;
}

bool smalti_ranks_outcomes_received(struct smalti_ranks_outcomes **outcomes, struct smalti_error *error)
{
	int all = 1;
	if (!*outcomes)
		return true;
	MPI_Testall(ranks.count - 1, &(*outcomes)->request[1], &all, MPI_STATUSES_IGNORE);
	if (!all)
		return false;
	/* a rank that was warned of a failure was cancelled: the failure is another rank's */
	for (int rank = 1; rank < ranks.count; rank++)
		if (error->code == SMALTI_OK || error->code == SMALTI_ECANCELLED)
			smalti_pass(error, &(*outcomes)->error[rank]);
	free(*outcomes);
	*outcomes = NULL;
	return true;
}

void smalti_ranks_report(int64_t job, const struct smalti_error *outcome)
{
	struct smalti_error signed_outcome = *outcome;
	if (ranks.own == 0)
		return;
	if (outcome->code)
		sign(&signed_outcome);
	send(&signed_outcome, sizeof(signed_outcome), 0, tag_of(job));
}

void smalti_ranks_warn(int64_t job)
{
	for (int rank = 0; rank < ranks.count; rank++)
		if (rank != ranks.own)
			send(&job, sizeof(job), rank, TAG_WARNING);
	ranks.sent++;
}

int64_t smalti_ranks_warned(void)
{
	int64_t job = -1;
	int any = 0;
	if (ranks.count > 1)
		MPI_Iprobe(MPI_ANY_SOURCE, TAG_WARNING, ranks.talk, &any, MPI_STATUS_IGNORE);
	if (!any)
		return -1;
	MPI_Recv(&job, sizeof(job), MPI_BYTE, MPI_ANY_SOURCE, TAG_WARNING, ranks.talk, MPI_STATUS_IGNORE);
	ranks.received++;
	return job;
}

void smalti_ranks_settle(void)
{
	int64_t sent = ranks.sent;
	MPI_Request request;
	if (ranks.count == 1)
		return;
	MPI_Iallreduce(MPI_IN_PLACE, &sent, 1, MPI_INT64_T, MPI_SUM, ranks.talk, &request);
	await(&request, NULL, NULL);
	while (ranks.received < sent - ranks.sent)
		smalti_ranks_warned();
	ranks.sent = ranks.received = 0;
}

/* Tiles */

MPI_Comm smalti_ranks_data(void)
{
	return ranks.data;
}

static int start(bool bind, struct smalti_error *error)
{
	static const char variable[] = "STARPU_MPI_NOBIND";
	struct smalti_environment changes = {.count = 0};
	if (!bind && !getenv(variable) && smalti_environment_set(&changes, variable, "1", error) < 0)
		return -1;
	const int status = starpu_mpi_init_comm(NULL, NULL, 0, ranks.data);
	smalti_environment_restore(&changes);
	ranks.open = status == 0;
	return status ? smalti_fail(error, SMALTI_ENODEV, "StarPU-MPI did not start: %s", strerror(-status))
		      : 0;
}

int smalti_ranks_open(double speed, bool bind, struct smalti_error *error)
{
	if (ranks.count == 1)
		return 0;
	smalti_ranks_gather(&speed, sizeof(speed), ranks.speed);
	return smalti_ranks_agree(start(bind, error), NULL, error);
}

void smalti_ranks_close(void)
{
	if (ranks.open)
		starpu_mpi_shutdown_comm(ranks.data);
	ranks.open = false;
}

double smalti_ranks_speed(int place)
{
	return ranks.speed[smalti_ranks_of(place)];
}

int smalti_ranks_of(int place)
{
	return place < 0 ? 0 : place % ranks.count;
}

void smalti_ranks_copy(void *handle, int from, int to, int priority)
{
	const starpu_mpi_tag_t tag = ++ranks.moves;
	if (from == ranks.own)
		starpu_mpi_isend_detached_prio(handle, to, tag, priority, ranks.data, NULL, NULL);
	if (to == ranks.own)
		starpu_mpi_irecv_detached_prio(handle, from, tag, priority, ranks.data, NULL, NULL);
}
