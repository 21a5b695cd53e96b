/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/replay.h"
#include "policies/policy.h"
#include "ranks/ranks.h"
#include "rt/places.h"
#include "rt/task_message.h"
#include "simulation/schedule_file.h"

enum { NOT_PLANNED = -1 };

/* The tasks of a worker. */
struct line {
	struct starpu_task **ready; /* by their turns; NULL: not ready, or taken */
	int64_t next;               /* the turn of the task that it runs next */
};

struct smalti_replay {
	struct smalti_session *session;
	char *path;
	struct smalti_planned_schedule *schedule;
	int64_t inserted; /* for the inserting thread */
	starpu_pthread_t watcher;
	bool watched;
	starpu_pthread_mutex_t mutex; /* guards what follows */
	struct line *lines;
	struct starpu_task_list loose; /* ready tasks without a turn */
	int64_t held, running;         /* tasks that are ready and wait for their turn; taken and not ended */
	int64_t moves;                 /* tasks that were inserted, became ready, were taken or ended */
	bool ends;
	struct smalti_error failure; /* from here on nothing has a turn */
};

/* StarPU has one policy per process. */
static struct smalti_replay *current;

const char *smalti_replay_file(const char *policy)
{
	static const char prefix[] = "replay:";
	return policy && strncmp(policy, prefix, strlen(prefix)) == 0 ? policy + strlen(prefix) : NULL;
}

/* The policy */

static void wake_all(void)
{
	for (unsigned worker = 0; worker < starpu_worker_get_count(); worker++)
		starpu_wake_worker_relax_light((int)worker);
}

/* Gives up the turns of all tasks. The caller holds the mutex, and wakes all. */
static void give_up(struct smalti_replay *replay, const struct smalti_error *cause)
{
	replay->failure = *cause;
	for (int worker = 0; worker < replay->schedule->worker_count; worker++)
		for (int64_t turn = 0; turn < replay->schedule->workers[worker].tasks; turn++) {
			struct starpu_task *task = replay->lines[worker].ready[turn];
			if (!task)
				continue;
			const struct smalti_message *message = task->cl_arg;
			smalti_task_group_fail(message->task_group, cause);
			starpu_task_list_push_back(&replay->loose, task);
		}
	replay->held = 0;
}

static void open_policy(unsigned context)
{
	policy_open(context, current);
}

static int push(struct starpu_task *task)
{
	struct smalti_replay *replay = current;
	const struct smalti_message *message = task->cl_arg;
	const int64_t number = message->replayed;
	policy_lock(&replay->mutex);
	const bool loose = replay->failure.code || number == NOT_PLANNED;
	const struct smalti_planned_task *planned = loose ? NULL : &replay->schedule->tasks[number];
	if (planned) {
		replay->lines[planned->worker].ready[planned->turn] = task;
		replay->held++;
		starpu_prefetch_task_input_for(task, (unsigned)planned->worker);
	} else
		starpu_task_list_push_back(&replay->loose, task);
	replay->moves++;
	starpu_push_task_end(task);
	policy_unlock(&replay->mutex);
	if (planned)
		starpu_wake_worker_relax_light(planned->worker);
	else
		wake_all();
	return 0;
}

/* Takes the first task without a turn that the worker can execute. */
static struct starpu_task *take_loose(struct smalti_replay *replay, unsigned worker)
{
	unsigned implementation;
	for (struct starpu_task *task = starpu_task_list_begin(&replay->loose); task;
	     task = starpu_task_list_next(task))
		if (starpu_worker_can_execute_task_first_impl(worker, task, &implementation)) {
			starpu_task_set_implementation(task, implementation);
			starpu_task_list_erase(&replay->loose, task);
			return task;
		}
	return NULL;
}

/* Takes the worker's next task, if it is ready. */
static struct starpu_task *take_next(struct smalti_replay *replay, unsigned worker)
{
	struct line *line = &replay->lines[worker];
	if (replay->failure.code || line->next == replay->schedule->workers[worker].tasks ||
	    !line->ready[line->next])
		return NULL;
	struct starpu_task *task = line->ready[line->next];
	line->ready[line->next++] = NULL;
	replay->held--;
	return task;
}

static struct starpu_task *pop(unsigned context)
{
	struct smalti_replay *replay = policy_state(context);
	const unsigned worker = (unsigned)starpu_worker_get_id_check();
	policy_lock(&replay->mutex);
	struct starpu_task *task = take_next(replay, worker);
	if (!task)
		task = take_loose(replay, worker);
	replay->running += task != NULL;
	replay->moves += task != NULL;
	policy_unlock(&replay->mutex);
	return task;
}

static void end_task(struct starpu_task *task, unsigned context)
{
	(void)task;
	struct smalti_replay *replay = policy_state(context);
	policy_lock(&replay->mutex);
	replay->running--;
	replay->moves++;
	policy_unlock(&replay->mutex);
}

struct starpu_sched_policy *smalti_replay_policy(void)
{
	static struct starpu_sched_policy policy = {.policy_name = "replay",
						    .policy_description = "the order of a file",
						    .init_sched = open_policy,
						    .push_task = push,
						    .pop_task = pop,
						    .post_exec_hook = end_task,
						    .prefetches = 1,
						    .worker_type = STARPU_WORKER_LIST};
	return &policy;
}

/* What it observes */

static bool can_run(const struct starpu_task *task, int worker)
{
	enum { BITS = 32 };
	const enum starpu_worker_archtype type = starpu_worker_get_type(worker);
	return (task->where & STARPU_WORKER_TO_MASK(type)) &&
	       (!task->workerids || task->workerids[worker / BITS] >> worker % BITS & 1) &&
	       (type == STARPU_CPU_WORKER ||
		smalti_task_fits(task, starpu_worker_get_memory_node((unsigned)worker)));
}

/* Checks that the schedule expects this task as the next one. */
static int check(const struct smalti_replay *replay, const struct starpu_task *task,
		 struct smalti_error *error)
{
	static const char remedy[] = "the schedule is of another run: make it again";
	const struct smalti_planned_schedule *schedule = replay->schedule;
	const int64_t number = replay->inserted;
	if (number >= schedule->count)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: expected %" PRId64 " tasks, found '%s' after them: %s", replay->path,
				   schedule->count, task->name, remedy);
	const struct smalti_planned_task *planned = &schedule->tasks[number];
	if (strcmp(planned->name, task->name) != 0)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: expected '%.99s' as task %" PRId64 ", found '%s': %s", replay->path,
				   planned->name, number, task->name, remedy);
	if (!can_run(task, planned->worker))
		return smalti_fail(error, SMALTI_EINVAL, "%s: task %" PRId64 ", '%s', cannot run on %s: %s",
				   replay->path, number, task->name, schedule->workers[planned->worker].name,
				   remedy);
	return 0;
}

static void inserts(void *user, struct starpu_task *task)
{
	struct smalti_replay *replay = user;
	struct smalti_message *message = task->cl_arg;
	struct smalti_error error = SMALTI_NO_ERROR;
	const int status = check(replay, task, &error);
	message->replayed = status < 0 ? NOT_PLANNED : replay->inserted;
	policy_lock(&replay->mutex);
	replay->inserted++;
	replay->moves++;
	const bool fails = status < 0 && !replay->failure.code;
	if (fails)
		give_up(replay, &error);
	error = replay->failure;
	policy_unlock(&replay->mutex);
	if (error.code)
		smalti_task_group_fail(message->task_group, &error);
	if (fails)
		wake_all();
}

/* The watcher */

/* Names a task that waits for its turn, and the one before it that does not come. */
static void describe_stall(const struct smalti_replay *replay, struct smalti_error *error)
{
	const struct smalti_planned_schedule *schedule = replay->schedule;
	for (int64_t i = 0; i < schedule->count; i++) {
		const struct smalti_planned_task *missing = &schedule->tasks[schedule->sequence[i]];
		if (missing->turn != replay->lines[missing->worker].next)
			continue;
		smalti_fail(error, SMALTI_EINVAL,
			    "%s: %s waits for task %" PRId64 ", '%.99s', which does not become ready: the "
			    "schedule is of another run, or one that cannot be carried out",
			    replay->path, schedule->workers[missing->worker].name, schedule->sequence[i],
			    missing->name);
		return;
	}
}

/* Gives up when nothing has moved for a minute, though tasks wait for their turns. */
static void *watch(void *user)
{
	enum { CHECKS = 1200 }; /* of 50 ms each */
	struct smalti_replay *replay = user;
	int64_t moves = -1;
	bool ends = false;
	for (int still = 0; !ends; still++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		starpu_sleep(0.05F);
		policy_lock(&replay->mutex);
		if (moves != replay->moves || replay->running || !replay->held)
			still = 0;
		moves = replay->moves;
		if (still == CHECKS) {
			describe_stall(replay, &error);
			give_up(replay, &error);
		}
		ends = replay->ends;
		policy_unlock(&replay->mutex);
		if (error.code)
			wake_all();
	}
	return NULL;
}

/* Opening and closing */

static struct line *new_lines(const struct smalti_planned_schedule *schedule, struct smalti_error *error)
{
	struct line *lines = smalti_calloc(schedule->worker_count, sizeof(*lines), error);
	struct starpu_task **ready = smalti_calloc(schedule->count, sizeof(struct starpu_task *), error);
	if (!lines || !ready) {
		free(lines);
		free(ready);
		return NULL;
	}
	for (int worker = 0; worker < schedule->worker_count; worker++) {
		lines[worker].ready = ready;
		ready += schedule->workers[worker].tasks;
	}
	return lines;
}

void smalti_replay_free(struct smalti_replay *replay)
{
	if (!replay)
		return;
	current = NULL;
	STARPU_PTHREAD_MUTEX_DESTROY(&replay->mutex);
	if (replay->lines)
		free(replay->lines[0].ready);
	free(replay->lines);
	smalti_planned_free(replay->schedule);
	free(replay->path);
	free(replay);
}

struct smalti_replay *smalti_replay_open(struct smalti_session *session, const char *path,
					 struct smalti_error *error)
{
	if (smalti_ranks_count() > 1) {
		smalti_fail(error, SMALTI_EUNSUPPORTED, "a schedule cannot be replayed over several ranks");
		return NULL;
	}
	struct smalti_replay *replay = smalti_calloc(1, sizeof(*replay), error);
	if (!replay)
		return NULL;
	STARPU_PTHREAD_MUTEX_INIT(&replay->mutex, NULL);
	starpu_task_list_init(&replay->loose);
	replay->session = session;
	replay->path = smalti_format(error, "%s", path);
	replay->schedule = replay->path ? smalti_planned_read(path, error) : NULL;
	replay->lines = replay->schedule ? new_lines(replay->schedule, error) : NULL;
	if (!replay->lines) {
		smalti_error_prefix(error, "replay");
		smalti_replay_free(replay);
		return NULL;
	}
	current = replay;
	session->observers[session->observer_count++] =
	    (struct smalti_observer){.inserts = inserts, .user = replay};
	return replay;
}

int smalti_replay_begin(struct smalti_replay *replay, struct smalti_error *error)
{
	const struct smalti_planned_schedule *schedule = replay->schedule;
	const int workers = (int)starpu_worker_get_count();
	char name[SMALTI_WORKER_NAME];
	if (schedule->worker_count != workers)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: expected %d workers, found %d: choose those that the schedule was "
				   "made for (--cpus)",
				   replay->path, schedule->worker_count, workers);
	for (int worker = 0; worker < workers; worker++) {
		smalti_session_worker_name(worker, name);
		if (strcmp(name, schedule->workers[worker].name) != 0)
			return smalti_fail(
			    error, SMALTI_EINVAL,
			    "%s: expected worker %d to be '%.99s', found '%s': the schedule is "
			    "of another machine",
			    replay->path, worker, schedule->workers[worker].name, name);
	}
	STARPU_PTHREAD_CREATE(&replay->watcher, NULL, watch, replay);
	replay->watched = true;
	return 0;
}

int smalti_replay_place(const struct smalti_replay *replay, int place)
{
	if (!replay || replay->inserted >= replay->schedule->count)
		return place;
	const unsigned node =
	    starpu_worker_get_memory_node((unsigned)replay->schedule->tasks[replay->inserted].worker);
	const struct smalti_places *places = replay->session->places;
	for (int at = 0; at < smalti_places_count(places); at++)
		if (smalti_places_node(places, at) == node)
			return at;
	return place;
}

int smalti_replay_urgency(const struct smalti_replay *replay)
{
	const struct smalti_planned_schedule *schedule = replay->schedule;
	return replay->inserted < schedule->count ? -(int)schedule->tasks[replay->inserted].position
						  : INT_MIN;
}

int smalti_replay_end(struct smalti_replay *replay, struct smalti_error *error)
{
	const struct smalti_planned_schedule *schedule = replay->schedule;
	struct smalti_error cause = SMALTI_NO_ERROR;
	policy_lock(&replay->mutex);
	if (!replay->failure.code && replay->inserted < schedule->count) {
		smalti_fail(&cause, SMALTI_EINVAL,
			    "%s: expected %" PRId64 " tasks, found %" PRId64
			    ": the schedule is of another run: make it again",
			    replay->path, schedule->count, replay->inserted);
		give_up(replay, &cause);
	}
	replay->ends = true;
	policy_unlock(&replay->mutex);
	wake_all();
	if (replay->watched)
		STARPU_PTHREAD_JOIN(replay->watcher, NULL);
	replay->watched = false;
	return cause.code ? smalti_pass(error, &cause) : 0;
}
