/* SPDX-License-Identifier: Apache-2.0 */
/* The policy "locality". A place is a memory and the workers of one kind that compute in it. A task goes to
 * the place where it ends first: after all tasks that wait there, and after the transfers of data that it
 * lacks. Each transfer takes the fastest link from a memory that has the data, after others over that link.
 * Workers of a place share its tasks. They take the highest priority first and, of equal ones, a task whose
 * data is there. A worker without tasks takes one of another place of its kind if it ends that sooner. */
#include "policy.h"

struct place {
	unsigned node;
	enum starpu_worker_archtype kind;
	int worker[STARPU_NMAXWORKERS];
	int workers;
	struct starpu_task_list ready; /* by priority */
	double in, out;                /* when its memory's links are free */
};

struct state {
	starpu_pthread_mutex_t mutex;
	struct place place[STARPU_MAXNODES + 1];
	int places;
	int waiting; /* tasks in all places */
	int place_of[STARPU_NMAXWORKERS];
	double busy[STARPU_NMAXWORKERS];  /* lengths of a worker's tasks that have not ended, in sum */
	double began[STARPU_NMAXWORKERS]; /* when its running task began; 0: none */
	double length[STARPU_NMAXWORKERS];
};

/* The place and time at which a task would end. */
struct choice {
	int place;
	unsigned implementation;
	double length, ready, end;
	double elsewhere; /* the least length at the other places */
	double cost;      /* the end plus the transfers once more: others wait for them, too */
};

static void init(unsigned context)
{
	struct state *state = calloc(1, sizeof(*state));
	STARPU_PTHREAD_MUTEX_INIT(&state->mutex, NULL);
	policy_open(context, state);
}

static void deinit(unsigned context)
{
	struct state *state = policy_state(context);
	STARPU_PTHREAD_MUTEX_DESTROY(&state->mutex);
	free(state);
}

static int find_place(struct state *state, unsigned node, enum starpu_worker_archtype kind)
{
	for (int i = 0; i < state->places; i++)
		if (state->place[i].node == node && state->place[i].kind == kind)
			return i;
	struct place *place = &state->place[state->places];
	place->node = node;
	place->kind = kind;
	starpu_task_list_init(&place->ready);
	return state->places++;
}

static void add_workers(unsigned context, int *workers, unsigned count)
{
	struct state *state = policy_state(context);
	for (unsigned i = 0; i < count; i++) {
		const int worker = workers[i];
		const int place = find_place(state, starpu_worker_get_memory_node((unsigned)worker),
					     starpu_worker_get_type(worker));
		state->place_of[worker] = place;
		state->place[place].worker[state->place[place].workers++] = worker;
	}
}

static double left(const struct state *state, int worker, double now)
{
	const double done = state->began[worker] > 0 ? now - state->began[worker] : 0;
	return state->busy[worker] - fmin(done, state->length[worker]);
}

/* Stores a waiting task's microseconds that only this place has for it: none where another is as fast, all
 * where no other can execute it. */
static void set_bound(struct starpu_task *task, double length, double elsewhere)
{
	task->sched_data = (void *)(uintptr_t)(length * fmax(1 - length / elsewhere, 0));
}

static double bound(const struct starpu_task *task)
{
	return (double)(uintptr_t)task->sched_data;
}

/* Returns when a worker of the place could begin a task of this priority. It passes tasks with a lower one,
 * which end later by that: the bound of each counts, the part that this place does better than others. */
static double free_at(const struct state *state, const struct place *place, int priority, double now)
{
	double work = 0, first = INFINITY;
	int idle = 0;
	for (int i = 0; i < place->workers; i++) {
		const double rest = left(state, place->worker[i], now);
		work += rest;
		first = fmin(first, rest);
		idle += rest <= 0;
	}
	for (struct starpu_task *task = starpu_task_list_begin(&place->ready); task;
	     task = starpu_task_list_next(task)) {
		const int before = task->priority >= priority;
		work += before ? task->predicted : bound(task);
		idle -= before || bound(task) > 0;
	}
	return idle > 0 ? now : now + fmax(first, work / place->workers);
}

/* Returns the place from which a buffer comes fastest: StarPU copies from where it is, not from where it will
 * be. */
static struct place *source_of(struct state *state, starpu_data_handle_t handle, unsigned to)
{
	struct place *best = NULL;
	double max = 0;
	for (int i = 0; i < state->places; i++) {
		const unsigned from = state->place[i].node;
		if (from == to || !policy_is_valid(handle, from))
			continue;
		const double bandwidth = starpu_transfer_bandwidth(from, to);
		if (bandwidth > max)
			max = bandwidth, best = &state->place[i];
	}
	return best;
}

/* Returns when all that a task reads is there; `commit` records its transfers as under way. */
static double data_at(struct state *state, struct starpu_task *task, struct place *to, double now, int commit)
{
	double in = fmax(to->in, now);
	int missing = 0, under_way = 0;
	for (unsigned i = 0; i < STARPU_TASK_GET_NBUFFERS(task); i++) {
		const starpu_data_handle_t handle = STARPU_TASK_GET_HANDLE(task, i);
		const enum policy_whereabouts where = policy_where(task, i, to->node);
		struct place *from = where == POLICY_ELSEWHERE ? source_of(state, handle, to->node) : NULL;
		under_way = under_way || where == POLICY_UNDER_WAY;
		if (!from)
			continue;
		missing = 1;
		in = fmax(in, from->out) + starpu_transfer_latency(from->node, to->node) +
		     (double)starpu_data_get_size(handle) / starpu_transfer_bandwidth(from->node, to->node);
		if (commit)
			from->out = in;
	}
	if (!missing)
		return under_way ? in : now;
	if (commit)
		to->in = in;
	return in;
}

static int look_at(struct state *state, struct starpu_task *task, int index, double now,
		   struct choice *choice)
{
	struct place *place = &state->place[index];
	unsigned implementation;
	int worker = 0;
	while (worker < place->workers && !starpu_worker_can_execute_task_first_impl(
					      (unsigned)place->worker[worker], task, &implementation))
		worker++;
	if (worker == place->workers)
		return 0;
	choice->place = index;
	choice->implementation = implementation;
	choice->length = policy_length(task, (unsigned)place->worker[worker], implementation);
	choice->ready = data_at(state, task, place, now, 0);
	choice->end = fmax(free_at(state, place, task->priority, now), choice->ready) + choice->length;
	choice->cost = choice->end + choice->ready - now;
	return 1;
}

static struct choice choose(struct state *state, struct starpu_task *task)
{
	const double now = starpu_timing_now();
	struct choice best = {.cost = INFINITY, .length = INFINITY, .elsewhere = INFINITY}, other;
	for (int i = 0; i < state->places; i++) {
		if (!look_at(state, task, i, now, &other))
			continue;
		const int better = other.cost < best.cost;
		other.elsewhere = fmin(best.elsewhere, best.length);
		best.elsewhere = fmin(best.elsewhere, other.length);
		if (better)
			best = other;
	}
	data_at(state, task, &state->place[best.place], now, 1);
	return best;
}

/* Returns what a place with no tasks would gain by taking the last one of another, at its cost there; 0
 * unless it would end sooner even if it took twice as long as expected. Places of another kind keep their
 * tasks: they are better at them, and may need the core that a worker here computes on. */
static double gain_of(struct state *state, const struct place *from, int own, double now)
{
	struct starpu_task *task = starpu_task_list_back(&from->ready);
	struct choice here;
	if (!task || state->place[own].kind != from->kind || !look_at(state, task, own, now, &here))
		return 0;
	const double gain = free_at(state, from, task->priority, now) - here.cost;
	return gain > here.length ? gain : 0;
}

static int has_idle(const struct state *state, const struct place *place)
{
	for (int i = 0; i < place->workers; i++)
		if (state->busy[place->worker[i]] <= 0)
			return 1;
	return 0;
}

/* Returns a place with an idle worker that may take tasks from this place, whose workers are all busy; -1:
 * none. Waking a worker for nothing takes the core from those that have work. */
static int helper_of(struct state *state, int index)
{
	const double now = starpu_timing_now();
	if (has_idle(state, &state->place[index]))
		return -1;
	for (int i = 1; i < state->places; i++) {
		const int other = (index + i) % state->places;
		if (has_idle(state, &state->place[other]) &&
		    gain_of(state, &state->place[index], other, now) > 0)
			return other;
	}
	return -1;
}

/* Wakes a sleeping worker, if there is one. */
static int wake(const struct place *place)
{
	for (int i = 0; i < place->workers; i++)
		if (starpu_wake_worker_relax_light(place->worker[i]))
			return 1;
	return 0;
}

static int push(struct starpu_task *task)
{
	struct state *state = policy_state(task->sched_ctx);
	policy_lock(&state->mutex);
	const struct choice choice = choose(state, task);
	struct place *place = &state->place[choice.place];
	task->predicted = choice.length;
	set_bound(task, choice.length, choice.elsewhere);
	starpu_task_set_implementation(task, choice.implementation);
	if (state->places > 1)
		starpu_prefetch_task_input_on_node(task, place->node);
	policy_insert(&place->ready, task);
	state->waiting++;
	const int helper = helper_of(state, choice.place);
	starpu_push_task_end(task);
	policy_unlock(&state->mutex);
	if (!wake(place) && helper >= 0)
		wake(&state->place[helper]);
	return 0;
}

static int is_there(struct starpu_task *task, unsigned node)
{
	for (unsigned i = 0; i < STARPU_TASK_GET_NBUFFERS(task); i++)
		if (policy_where(task, i, node) != POLICY_THERE)
			return 0;
	return 1;
}

/* Returns the first task of the highest priority whose data is there, else the first task. */
static struct starpu_task *own_task(const struct place *place)
{
	struct starpu_task *first = starpu_task_list_begin(&place->ready);
	for (struct starpu_task *task = first; task && task->priority == first->priority;
	     task = starpu_task_list_next(task))
		if (is_there(task, place->node))
			return task;
	return first;
}

/* Returns the task that gains most by running here, and its place in *of; NULL: none. */
static struct starpu_task *others_task(struct state *state, int own, int *of)
{
	const double now = starpu_timing_now();
	struct starpu_task *best = NULL;
	double max = 0;
	for (int i = 0; i < state->places; i++) {
		const double gain = i == own ? 0 : gain_of(state, &state->place[i], own, now);
		if (gain > max)
			max = gain, best = starpu_task_list_back(&state->place[i].ready), *of = i;
	}
	return best;
}

static struct starpu_task *pop(unsigned context)
{
	struct state *state = policy_state(context);
	const int worker = starpu_worker_get_id_check();
	if (!state->waiting)
		return NULL;
	policy_lock(&state->mutex);
	int from = state->place_of[worker];
	struct starpu_task *task = own_task(&state->place[from]);
	if (!task && (task = others_task(state, from, &from)))
		task->predicted = policy_length(task, (unsigned)worker, 0);
	if (task) {
		starpu_task_list_erase(&state->place[from].ready, task);
		state->waiting--;
		state->busy[worker] += task->predicted;
	}
	policy_unlock(&state->mutex);
	return task;
}

static void begins(struct starpu_task *task, unsigned context)
{
	struct state *state = policy_state(context);
	const int worker = starpu_worker_get_id_check();
	policy_lock(&state->mutex);
	state->began[worker] = starpu_timing_now();
	state->length[worker] = task->predicted;
	policy_unlock(&state->mutex);
}

static void ends(struct starpu_task *task, unsigned context)
{
	struct state *state = policy_state(context);
	const int worker = starpu_worker_get_id_check();
	policy_lock(&state->mutex);
	state->busy[worker] = fmax(0, state->busy[worker] - task->predicted);
	state->began[worker] = 0;
	policy_unlock(&state->mutex);
}

struct starpu_sched_policy *starpu_get_sched_lib_policy(const char *name)
{
	static struct starpu_sched_policy policy = {
	    .policy_name = "locality",
	    .policy_description = "where it ends first, by what has to move and over which link",
	    .init_sched = init,
	    .deinit_sched = deinit,
	    .add_workers = add_workers,
	    .push_task = push,
	    .pop_task = pop,
	    .pre_exec_hook = begins,
	    .post_exec_hook = ends,
	    .prefetches = 1,
	    .worker_type = STARPU_WORKER_LIST,
	};
	return strcmp(name, policy.policy_name) == 0 ? &policy : NULL;
}
