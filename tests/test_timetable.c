/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules that are made in advance (bench/timetable.h): known optima, rules that every schedule keeps,
 * bounds, the regret and its causes, and the files that are replayed. */
#include "bench/regret.h"
#include "simulation/schedule_file.h"
#include "tests/harness.h"

#include <math.h>
#include <stdarg.h>

enum { TEXT = 1 << 16, RANDOM_TASKS = 40 };

/* A trace that is being written; times are in microseconds. */
struct traced {
	char text[TEXT];
	size_t length;
	int tasks;
};

static void put(struct traced *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct traced *t, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	t->length += (size_t)vsnprintf(t->text + t->length, TEXT - t->length, format, values);
	va_end(values);
}

/* A task as a run computed it. */
struct did {
	int worker;
	double start, seconds;
	const char *after, *expected; /* at the other places; lists */
	double submitted;
	const char *reads, *writes;
};

static void put_task(struct traced *t, const struct did *did)
{
	put(t,
	    "%s{\"ph\":\"X\",\"cat\":\"task\",\"tid\":%d,\"ts\":%g,\"dur\":%g,\"name\":\"op\",\"args\":{"
	    "\"number\":%d,\"submitted\":%g,\"ready\":%g,\"after\":[%s],\"expected\":[%s],\"reads\":[%s],"
	    "\"writes\":[%s],\"flops\":1}}",
	    t->tasks ? "," : "{\"traceEvents\":[", did->worker, did->start, did->seconds, t->tasks,
	    did->submitted, did->submitted, did->after ? did->after : "", did->expected,
	    did->reads ? did->reads : "", did->writes ? did->writes : "");
	t->tasks++;
}

static struct smalti_task_schedule *read_trace(struct traced *t, const char *places, const char *members)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	put(t, "],\"places\":%s%s}", places, members);
	struct smalti_task_schedule *s =
	    smalti_schedule_read(test_write("trace.json", t->text, t->length), &error);
	const int status =
	    s && smalti_schedule_measure(s, &error) == 0 && smalti_schedule_bound(s, &error) == 0 ? 0 : -1;
	SUCCEEDS(status, &error, "trace");
	return s;
}

static bool near(double a, double micro)
{
	return fabs(a - 1e-6 * micro) < 1e-9;
}

/* Reads the trace of these tasks, and finds the regret. */
static struct smalti_task_schedule *begin_case(const struct did *did, int count, const char *places,
					       const char *members, struct smalti_regret *regret)
{
	static struct traced t;
	struct smalti_error error = SMALTI_NO_ERROR;
	t = (struct traced){.length = 0};
	for (int i = 0; i < count; i++)
		put_task(&t, &did[i]);
	struct smalti_task_schedule *s = read_trace(&t, places, members);
	SUCCEEDS(smalti_regret_find(s, regret, &error), &error, "regret");
	return s;
}

/* Checks the regret's sum and the plan; frees both. */
static void end_case(struct smalti_task_schedule *s, struct smalti_regret *regret, const char *what)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	double sum = 0;
	for (int cause = 0; cause < SMALTI_REGRET_CAUSES; cause++)
		sum += regret->seconds[cause];
	CHECK(fabs(s->makespan - regret->plan->makespan - sum) < 1e-9, what);
	CHECK(regret->plan->makespan >= regret->bound - 1e-9, what);
	CHECK(regret->inserted >= smalti_timetable_window(s, false) - 1e-9, what);
	SUCCEEDS(smalti_timetable_check(s, regret->plan, &error), &error, what);
	smalti_timetable_free(regret->plan);
	smalti_schedule_free(s);
}

/* Longest first, 3 3 2 2 2 take 7 on two workers; 6 are enough. */
static void greedy(void)
{
	static const struct did did[] = {{0, 0, 3, .expected = "3"},
					 {1, 0, 3, .expected = "3"},
					 {0, 3, 2, .expected = "2"},
					 {1, 3, 2, .expected = "2"},
					 {0, 5, 2, .expected = "2"}};
	struct smalti_regret regret;
	struct smalti_task_schedule *s = begin_case(did, COUNT(did), "[[0,1]]", "", &regret);
	CHECK(near(s->makespan, 7) && near(regret.bound, 6) && near(regret.plan->makespan, 6), "6 of 7");
	CHECK(near(regret.seconds[SMALTI_REGRET_PLACE] + regret.seconds[SMALTI_REGRET_END], 1),
	      "the last task is at the wrong place");
	CHECK(near(regret.seconds[SMALTI_REGRET_ORDER], 0) && near(regret.seconds[SMALTI_REGRET_RUN], 0),
	      "and nothing else is wrong");
	end_case(s, &regret, "greedy");
}

/* One task, then four, then one, all alike, on two workers: 40, which neither work nor path tell. The run has
 * the chain's worker begin late. */
static void windows(void)
{
	static const struct did did[] = {
	    {0, 5, 10, .expected = "10"},       {0, 15, 10, "0", .expected = "10"},
	    {1, 15, 10, "0", .expected = "10"}, {0, 25, 10, "0", .expected = "10"},
	    {1, 25, 10, "0", .expected = "10"}, {0, 35, 10, "1,2,3,4", .expected = "10"}};
	struct smalti_regret regret;
	struct smalti_task_schedule *s = begin_case(did, COUNT(did), "[[0,1]]", "", &regret);
	CHECK(near(s->area, 30) && near(s->path, 30), "work and path");
	CHECK(near(regret.bound, 40) && near(regret.plan->makespan, 40), "the window's bound is exact");
	CHECK(near(s->makespan, 45), "the run began 5 late");
	CHECK(near(regret.seconds[SMALTI_REGRET_START], 5), "which is idle time at the start");
	end_case(s, &regret, "windows");
}

/* The second of two independent tasks is inserted only when the first has ended. */
static void insertion(void)
{
	static const struct did did[] = {{0, 0, 10, .expected = "10"},
					 {1, 12, 10, .expected = "10", .submitted = 12}};
	struct smalti_regret regret;
	struct smalti_task_schedule *s = begin_case(did, COUNT(did), "[[0,1]]", "", &regret);
	CHECK(near(regret.bound, 10) && near(regret.inserted, 22), "bounds");
	CHECK(near(regret.plan->makespan, 22), "it may have waited for the first");
	end_case(s, &regret, "insertion");
}

/* A task is ten times faster at place 1, but its 1000 bytes take 50 to get there. */
static void moves(void)
{
	static const struct did did[] = {{1, 60, 2, NULL, "20,2", 0, "1", "2"}};
	static const char members[] =
	    ",\"tiles\":[0,1000,1],\"links\":[{\"from\":0,\"to\":1,\"gbs\":0.02,\"us\":5}]";
	struct smalti_regret regret;
	struct smalti_task_schedule *s = begin_case(did, COUNT(did), "[[0],[1]]", members, &regret);
	CHECK(near(regret.plan->makespan, 20), "it stays where its data is");
	CHECK(regret.plan->worker[0] == 0, "at place 0");
	CHECK(near(s->makespan, 62) && regret.bound > 1.9e-6 && regret.bound < 15e-6,
	      "the run, and the bound: with a linear program 1000 / 68");
	end_case(s, &regret, "moves");
}

/* Writes the numbers of up to three tasks before this one. */
static void draw_before(uint64_t *random, int task, char list[64])
{
	*list = '\0';
	for (int i = 0; i < 3 && task > 0; i++)
		if (test_random(random) > 0)
			smalti_append(list, 64, ",", "%d",
				      (int)((1 + test_random(random)) / 2 * (float)task));
}

/* A random run of two workers at place 0 and one at place 1, in the order of insertion. */
static struct smalti_task_schedule *random_run(struct traced *t, uint64_t *random)
{
	double free_at = 0;
	*t = (struct traced){.length = 0};
	for (int task = 0; task < RANDOM_TASKS; task++) {
		char after[64], reads[64], writes[16], expected[64];
		const double seconds = 1 + 10 * (1 + (double)test_random(random));
		draw_before(random, task, after);
		snprintf(reads, sizeof(reads), "%s", after);
		snprintf(writes, sizeof(writes), "%d", task);
		snprintf(expected, sizeof(expected), "%g,%g", seconds,
			 1 + 10 * (1 + (double)test_random(random)));
		put_task(t, &(struct did){task % 3, free_at, seconds, after, expected, 0, reads, writes});
		free_at += seconds;
	}
	char members[1024] =
	    ",\"links\":[{\"from\":0,\"to\":1,\"gbs\":1,\"us\":1},{\"from\":1,\"to\":0,\"gbs\":1,"
	    "\"us\":1}],\"tiles\":[1";
	for (int tile = 1; tile < RANDOM_TASKS; tile++)
		smalti_append(members, sizeof(members), ",", "%d", 100 * tile);
	smalti_append(members, sizeof(members), "", "]");
	return read_trace(t, "[[0,1],[2]]", members);
}

static void random_graphs(void)
{
	static struct traced t;
	uint64_t random = 7;
	for (int i = 0; i < 8; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_regret regret, again;
		struct smalti_task_schedule *s = random_run(&t, &random);
		SUCCEEDS(smalti_regret_find(s, &regret, &error), &error, "regret");
		SUCCEEDS(smalti_regret_find(s, &again, &error), &error, "again");
		CHECK(regret.plan->makespan == again.plan->makespan, "a search repeats");
		CHECK(regret.plan->makespan < s->makespan, "one after the other is not the best");
		smalti_timetable_free(again.plan);
		end_case(s, &regret, "random");
	}
}

/* A trace with more places than a schedule can have is refused. */
static void places(void)
{
	static const struct did did = {0, 0, 10, .expected = "10"};
	static struct traced t;
	struct smalti_error error = SMALTI_NO_ERROR;
	put_task(&t, &did);
	put(&t, "],\"places\":[[0]");
	for (int place = 1; place < 2 * SMALTI_SCHEDULE_WORKERS; place++)
		put(&t, ",[]");
	put(&t, "]}");
	struct smalti_task_schedule *s =
	    smalti_schedule_read(test_write("trace.json", t.text, t.length), &error);
	FAILS(s ? 0 : -1, &error, SMALTI_EFORMAT, "places", "512 places", "256");
	smalti_schedule_free(s);
}

/* Plans that break each rule. */
static void broken_rules(void)
{
	static const struct did did[] = {{0, 0, 10, .expected = "10"}, {0, 10, 10, "0", .expected = "10"}};
	static const struct {
		const char *word;
		int64_t count, second;
		double begin;
	} rows[] = {
	    {"1 of 2 tasks", 1, 1, 10}, {"is there twice", 2, 0, 10}, {"before its worker is free", 2, 1, 9}};
	static struct traced t;
	for (int i = 0; i < COUNT(did); i++)
		put_task(&t, &did[i]);
	struct smalti_task_schedule *s = read_trace(&t, "[[0,1]]", "");
	for (int i = 0; i < COUNT(rows); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_timetable *plan = smalti_timetable_recorded(s, &error);
		plan->count = rows[i].count;
		plan->sequence[1] = rows[i].second;
		plan->begin[1] = 1e-6 * rows[i].begin;
		FAILS(smalti_timetable_check(s, plan, &error), &error, SMALTI_EINVAL, rows[i].word,
		      rows[i].word);
		smalti_timetable_free(plan);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_timetable *plan = smalti_timetable_recorded(s, &error);
	SUCCEEDS(smalti_timetable_followed(plan, s, &error), &error, "as it ran");
	plan->worker[1] = 1;
	FAILS(smalti_timetable_followed(plan, s, &error), &error, SMALTI_EINVAL, "followed", "task 1");
	smalti_timetable_free(plan);
	smalti_schedule_free(s);
}

#define FILE_HEAD(tasks)                                                                                     \
	"{\"format\":\"smalti-schedule\",\"version\":1,\"tasks\":" tasks ",\"workers\":[\"a\",\"b\"]}\n"
#define FILE_TASK(task, worker) "{\"task\":" task ",\"name\":\"op\",\"worker\":" worker "}\n"

static void files(void)
{
	static const struct {
		const char *name, *text, *word;
	} rows[] = {
	    {"empty", "", "empty"},
	    {"not JSON", "x\n", "line 1"},
	    {"no object", "3\n", "format"},
	    {"another format", "{\"format\":\"x\",\"version\":1}\n", "was expected"},
	    {"another version", "{\"format\":\"smalti-schedule\",\"version\":2}\n", "version"},
	    {"no workers", "{\"format\":\"smalti-schedule\",\"version\":1,\"tasks\":1}\n", "workers"},
	    {"no tasks", FILE_HEAD("0"), "tasks"},
	    {"too many tasks", FILE_HEAD("1e15"), "tasks"},
	    {"a task too few", FILE_HEAD("2") FILE_TASK("0", "0"), "cut short"},
	    {"a task twice", FILE_HEAD("2") FILE_TASK("0", "0") FILE_TASK("0", "1"), "twice"},
	    {"a task too many", FILE_HEAD("1") FILE_TASK("0", "0") FILE_TASK("1", "0"), "line 3"},
	    {"no such worker", FILE_HEAD("1") FILE_TASK("0", "2"), "worker 2"},
	    {"a negative worker", FILE_HEAD("1") FILE_TASK("0", "-1"), "worker"},
	    {"no name", FILE_HEAD("1") "{\"task\":0,\"worker\":0}\n", "name"},
	    {"an empty line", FILE_HEAD("1") "\n" FILE_TASK("0", "0"), "line 2"},
	};
	for (int i = 0; i < COUNT(rows); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_planned_schedule *file =
		    smalti_planned_read(test_write("plan.jsonl", rows[i].text, strlen(rows[i].text)), &error);
		CHECK(!file, rows[i].name);
		CHECK(strstr(error.message, rows[i].word) && strstr(error.message, "plan.jsonl"),
		      error.message);
		smalti_planned_free(file);
	}
}

static void round_trip(void)
{
	static const char text[] = FILE_HEAD("3") FILE_TASK("1", "0") FILE_TASK("0", "1") FILE_TASK("2", "0");
	struct smalti_error error = SMALTI_NO_ERROR;
	size_t length = 0;
	struct smalti_planned_schedule *file =
	    smalti_planned_read(test_write("plan.jsonl", text, strlen(text)), &error);
	SUCCEEDS(file ? 0 : -1, &error, "read");
	CHECK(file->tasks[2].turn == 1 && file->tasks[0].turn == 0 && file->sequence[0] == 1, "turns");
	const char *path = test_file("again.jsonl");
	SUCCEEDS(smalti_planned_write(file, path, &error), &error, "write");
	FILE *stream = fopen(path, "r");
	char back[sizeof(text) + 1] = "";
	length = stream ? fread(back, 1, sizeof(back), stream) : 0;
	if (stream)
		fclose(stream);
	CHECK(length == strlen(text) && strcmp(back, text) == 0, "the same bytes");
	smalti_planned_free(file);
}

static const struct test tests[] = {
    {"greedy", greedy},
    {"windows", windows},
    {"insertion", insertion},
    {"moves", moves},
    {"random graphs", random_graphs},
    {"too many places", places},
    {"broken rules", broken_rules},
    {"files", files},
    {"the file of a schedule", round_trip},
};

TEST_MAIN("timetable", tests)
