/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/schedule.h makes of a trace: times, idle time by its cause, the ready queue, bounds, and traces
 * that are none. */
#include "bench/schedule.h"
#include "tests/harness.h"

#include <math.h>

/* Two workers at place 0, one at place 1; times in microseconds. Task 1 waits 10 for its data, 3 for 1 and 2.
 * Each is of an image of its own. */
#define TASK(worker, ts, dur, number, ready, after, expected)                                                \
	"{\"ph\":\"X\",\"cat\":\"task\",\"tid\":" worker ",\"ts\":" ts ",\"dur\":" dur                       \
	",\"name\":\"op\",\"args\":{\"number\":" number ",\"ready\":" ready ",\"after\":[" after             \
	"],\"expected\":[" expected "],\"flops\":1,\"request\":\"image " number "\"}}"
#define HEAD "{\"traceEvents\":["
#define TAIL(places)                                                                                         \
	"],\"transfers\":[{\"bytes\":30},{\"bytes\":12}],\"transfer_bound\":5e-5,\"places\":" places "}"
#define FIRST TASK("0", "1000", "100", "0", "1000", "", "80,null")

static const char trace[] = HEAD FIRST
    "," TASK("1", "1110", "50", "1", "1100", "0",
	     "50,10") ",{\"ph\":\"X\",\"cat\":\"transfer\",\"tid\":1,"
		      "\"ts\":1100,\"dur\":10}," TASK("0", "1120", "80", "2", "1100", "0", "60,40") "," TASK(
			  "2", "1200", "20", "3", "1200", "1,2", "90,20") TAIL("[[0,1],[2]]");

static bool near(double a, double micro)
{
	return fabs(a - 1e-6 * micro) < 1e-9;
}

static struct smalti_task_schedule *read_text(const char *text, struct smalti_error *error)
{
	return smalti_schedule_read(test_write("trace.json", text, strlen(text)), error);
}

static void times(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_schedule *s = read_text(trace, &error);
	SUCCEEDS(s ? smalti_schedule_measure(s, &error) : -1, &error, "read");
	if (!s)
		return;
	CHECK(s->count == 4 && s->worker_count == 3 && s->places == 2 && s->bytes == 42, "counts");
	CHECK(near(s->makespan, 220), "makespan");
	CHECK(near(s->transfers, 50), "what transfers take at least");
	CHECK(near(s->latency_median, 160) && near(s->latency_95, 220) && near(s->latency_max, 220),
	      "images end at 100, 160, 200 and 220");
	CHECK(fabs(s->queue - (10. + 20) / 220) < 1e-9, "queue: task 1 waits 10, task 2 waits 20");
	CHECK(near(s->workers[0].busy, 180) && near(s->workers[1].busy, 50) && near(s->workers[2].busy, 20),
	      "busy");
	CHECK(near(s->workers[0].idle[SMALTI_IDLE_OTHERS], 20), "a task was ready in the gap of worker 0");
	CHECK(near(s->workers[0].idle[SMALTI_IDLE_END], 20), "end of worker 0");
	CHECK(near(s->workers[1].idle[SMALTI_IDLE_START], 110), "start of worker 1");
	CHECK(near(s->workers[2].idle[SMALTI_IDLE_START], 200), "start of worker 2");
	int64_t waiting[22];
	smalti_schedule_queue(s, waiting, 22);
	CHECK(waiting[9] == 0 && waiting[10] == 2 && waiting[11] == 1 && waiting[12] == 0,
	      "the queue over time");
	struct smalti_schedule_op ops[SMALTI_SCHEDULE_OPS];
	CHECK(smalti_schedule_ops(s, ops) == 1 && ops[0].count == 4, "one operation");
	CHECK(near(ops[0].seconds, 250) && near(ops[0].deviation, 20 + 0 + 20 + 0), "mispredicted");
	smalti_schedule_free(s);
}

/* Where they ran tasks take what they took, elsewhere what is expected. */
static void bounds(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_schedule *s = read_text(trace, &error);
	SUCCEEDS(s ? smalti_schedule_bound(s, &error) : -1, &error, "bound");
	if (!s)
		return;
	CHECK(near(s->path, 100 + 40 + 20), "0, then 2 at place 1, then 3");
	CHECK(s->area > 40e-6 && s->area < 85e-6, "the work shared among three workers");
	CHECK(isnan(s->linear) || (s->linear >= s->path - 1e-9 && s->linear < s->path * 1.2), "both");
	smalti_schedule_free(s);
}

/* Twice two tasks that no worker can share: the program is above the area and the chain. */
static void linear_is_more(void)
{
	static const char chains[] = HEAD TASK("0", "0", "10", "0", "0", "", "10") "," TASK(
	    "0", "10", "10", "1", "10", "0", "10") "," TASK("1", "20", "10", "2", "20", "1",
							    "10") "," TASK("0", "20", "10", "3", "20", "1",
									   "10") TAIL("[[0,1]]");
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_schedule *s = read_text(chains, &error);
	SUCCEEDS(s ? smalti_schedule_bound(s, &error) : -1, &error, "bound");
	if (!s)
		return;
	CHECK(near(s->path, 30) && near(s->area, 20), "area and path");
	CHECK(isnan(s->linear) || near(s->linear, 30), "a homogeneous machine has the larger of the two");
	smalti_schedule_free(s);
}

static void no_traces(void)
{
	static const struct {
		const char *name, *text, *word;
	} rows[] = {
	    {"empty", "", "JSON"},
	    {"no object", "3", "places"},
	    {"no tasks", "{\"traceEvents\":[],\"places\":[[0]]}", "no tasks"},
	    {"a worker that is not there", HEAD FIRST TAIL("[[1]]"), "worker 1 of 1"},
	    {"a task on none", HEAD TASK("7", "0", "1", "0", "0", "", "1") TAIL("[[0]]"), "worker 7"},
	    {"a number too large", HEAD TASK("0", "0", "1", "5", "0", "", "1") TAIL("[[0]]"), "task 5"},
	    {"waits for itself", HEAD TASK("0", "0", "1", "0", "0", "0", "1") TAIL("[[0]]"),
	     "waits for task 0"},
	    {"the same twice", HEAD FIRST "," FIRST TAIL("[[0]]"), "twice"},
	    {"no time", HEAD TASK("0", "\"x\"", "1", "0", "0", "", "1") TAIL("[[0]]"), "no times"},
	};
	for (int i = 0; i < COUNT(rows); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_task_schedule *s = read_text(rows[i].text, &error);
		FAILS(s ? 0 : -1, &error, SMALTI_EFORMAT, rows[i].name, rows[i].word, "trace.json");
		smalti_schedule_free(s);
	}
}

static const struct test tests[] = {
    {"times", times},
    {"bounds", bounds},
    {"a homogeneous machine", linear_is_more},
    {"no traces", no_traces},
};

TEST_MAIN("schedule", tests)
