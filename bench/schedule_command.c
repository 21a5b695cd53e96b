/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "bench/report.h"
#include "bench/schedule.h"
#include "bench/schedule_page.h"
#include "bench/schedule_runs.h"
#include "cli/common_rows.h"
#include "cli/signals.h"

#include <math.h>

enum { AXES = 7 };

struct schedule_options {
	struct smalti_bench_options bench;
	const char *machine, *model, *prompt, *size, *page;
	const char *lists[AXES];
	int64_t steps, images, opencl, warm;
	enum smalti_precision precision;
	bool optimal;
	char **command; /* of smalti, to run instead of generate; NULL: none */
};

#define TYPE struct schedule_options

static const struct schedule_options defaults = {
    .bench = {.repeats = 3}, .prompt = "a red star above a blue ring", .steps = 4, .images = 1, .warm = 3};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Lists: all combinations are run")},
    {SMALTI_STRING(TYPE, lists[0]), "sched", 0, "POLICY,...", "scheduling policies"},
    {SMALTI_STRING(TYPE, lists[1]), "strategy", 0, "NAME,...",
     "strategies that spread an image over devices"},
    {SMALTI_STRING(TYPE, lists[2]), "grain", 0, "WHAT,...", "what a task of the transformer is"},
    {SMALTI_STRING(TYPE, lists[3]), "tile-tokens", 0, "N,...", "tokens of a band of the transformer"},
    {SMALTI_STRING(TYPE, lists[4]), "cpus", 0, "N,...", "numbers of CPU workers"},
    {SMALTI_STRING(TYPE, lists[5]), "memory-limit", 0, "SIZE,...", "limits to this machine's memory"},
    {SMALTI_STRING(TYPE, lists[6]), "gpu-memory-limit", 0, "SIZE,...", "limits to each device's memory"},
    {SMALTI_GROUP("Work")},
    {SMALTI_STRING(TYPE, machine), "machine", 'M', "FILE",
     "simulate this machine (smalti simulate --machines); default: run on this one"},
    {SMALTI_INT64(TYPE, opencl), "opencl", 0, "N",
     "number of OpenCL devices to compute on, too; not simulated", .minimum = 0, .maximum = 64},
    {SMALTI_STRING(TYPE, model), "model", 'm', "DIR", "the model, as smalti generate or simulate take it"},
    SMALTI_PRECISION_ROW(TYPE, precision),
    {SMALTI_STRING(TYPE, prompt), "prompt", 'p', "TEXT", "the prompt"},
    {SMALTI_STRING(TYPE, size), "size", 's', "WxH", "width and height in pixels; default: the model's"},
    {SMALTI_INT64(TYPE, steps), "steps", 0, "N", "number of denoising steps", .minimum = 1,
     .maximum = SMALTI_STEPS_MAX},
    {SMALTI_INT64(TYPE, images), "images", 'i', "N", "number of images, all active at the same time",
     .minimum = 1, .maximum = SMALTI_IMAGES_MAX},
    {SMALTI_GROUP("Measuring")},
    SMALTI_BENCH_ROWS(TYPE),
    {SMALTI_INT64(TYPE, warm), "warm", 0, "N",
     "runs before the first one that counts, for StarPU's performance models", .minimum = 0, .maximum = 1000},
    {SMALTI_FLAG(TYPE, optimal), "optimal", 0, NULL,
     "search for the best schedule of each case's tasks, replay it, and show what the policy loses against "
     "it, "
     "by cause"},
    {SMALTI_STRING(TYPE, page), "page", 0, "FILE", "write a page with charts of all cases"},
};

static const struct smalti_example examples[] = {
    {"Policies over tilings on this machine",
     "smalti-bench schedule --sched lws,dmdas,locality --tile-tokens 16,64"},
    {"The same on one that is not there, with a page",
     "smalti-bench schedule --machine 4xT4 --model sigma-512 --precision f16 --sched "
     "dmdas,locality --page schedule.html"},
    {"What a policy loses against the best schedule that is found",
     "smalti-bench schedule --optimal --sched lws --page regret.html"},
    {"The same of an extraction",
     "smalti-bench schedule --optimal --sched lws -- extract data_info.json -o {}"},
    {NULL, NULL},
};

static enum smalti_exit run(void *values, int count, char **operands);

const struct smalti_command smalti_bench_schedule_command = {
    .name = "smalti-bench schedule",
    .summary = "compare scheduling policies, strategies and tilings by their schedules",
    .operands = "[COMMAND [ARGUMENT]...]",
    .description =
	"Generates images under all combinations of the lists, each in a process of its own, with "
	"a trace, and shows what "
	"the schedule was like: \"seconds\" is the makespan of the median run, from the first "
	"task that is ready to the end of the "
	"last. No schedule takes less than \"work\" (all of it shared ideally among all workers), "
	"\"path\" (the longest chain of tasks, "
	"each where it is fastest) and \"LP\" (both, and bringing weights to devices, in one linear "
	"program, by GLPK, of up to 2500 tasks). They go by what tasks took "
	"where they ran, and elsewhere by what StarPU's performance models expect, without other "
	"transfers. Of a simulation, \"transfers\" is what the bytes that have to cross links take at "
	"least. \"p50\", \"p95\" and \"last\" are when half, 95 % and all of the --images were there, "
	"which are submitted at once. Then come shares of all "
	"workers' time: in tasks, and without any for want of data, since no task was ready, and "
	"while others had those that were. "
	"\"queue\" is how many tasks were ready and not begun, on average.\n\n"
	"With --optimal it plans the tasks of the median run again, replays that schedule, and shows the "
	"makespans of both, of the plan, and two bounds: of any schedule, and (\"inserted\") of any whose "
	"tasks "
	"are inserted no faster. \"gap\" is what the plan is above the higher one. Then comes what the run "
	"took "
	"longer than planned, by cause: the run itself, idle workers at its start and its end, transfers, "
	"the "
	"order of the tasks, and their places.\n\n"
	"COMMAND is run instead of smalti generate, with the options of the lists: it takes them, and "
	"--trace. "
	"An ARGUMENT {} becomes a new path in each run.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};

static const struct smalti_bench_column columns[] = {
    {"seconds", "seconds", 1, "%.4f"},
    {"least", "least", 1, "%.4f"},
    {"area_bound", "work", 1, "%.4f"},
    {"path_bound", "path", 1, "%.4f"},
    {"linear_bound", "LP", 1, "%.4f"},
    {"transfer_bound", "transfers", 1, "%.4f"},
    {"latency_p50", "p50", 1, "%.4f"},
    {"latency_p95", "p95", 1, "%.4f"},
    {"latency_max", "last", 1, "%.4f"},
    {"busy", "% busy", 100, "%.1f"},
    {"idle_data", "% data", 100, "%.1f"},
    {"idle_no_ready_task", "% none", 100, "%.1f"},
    {"idle_others", "% others", 100, "%.1f"},
    {"idle_start", NULL, 1, "%.4f"},
    {"idle_end", NULL, 1, "%.4f"},
    {"queue", "queue", 1, "%.1f"},
    {"bytes", "MB moved", 1e-6, "%.1f"},
    {"model_error", "% mispred.", 100, "%.1f"},
    {"tasks", "tasks", 1, "%.0f"},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

struct sweeping {
	const struct schedule_options *options;
	struct smalti_sweep sweep;
	struct smalti_bench_report *report;
	struct smalti_schedule_page *page;
	char *directory;    /* of traces and messages */
	const char *replay; /* the file of the schedule that replaces the policy; NULL: none */
	int64_t ran;        /* runs so far */
	struct smalti_error *error;
};

static void add_text(struct smalti_call *call, const char *option, const char *text)
{
	if (text)
		smalti_call_add(call, "--%s=%s", option, text);
}

/* Adds the command that was given. */
static void add_command(struct sweeping *s, struct smalti_call *call)
{
	for (char **word = s->options->command; *word; word++)
		if (strcmp(*word, "{}") == 0)
			smalti_call_add(call, "%s/%" PRId64, s->directory, s->ran);
		else
			smalti_call_add(call, "%s", *word);
}

/* Adds smalti generate, or simulate, and its work. */
static void add_work(const struct sweeping *s, struct smalti_call *call)
{
	const struct schedule_options *o = s->options;
	smalti_call_add(call, "%s", o->machine ? "simulate" : "generate");
	add_text(call, "machine", o->machine);
	add_text(call, "model", o->model);
	add_text(call, "size", o->size);
	add_text(call, "prompt", o->prompt);
	smalti_call_add(call, "--precision=%s", smalti_precisions[o->precision]);
	smalti_call_add(call, "--steps=%lld", (long long)o->steps);
	smalti_call_add(call, "--images=%lld", (long long)o->images);
	if (!o->machine) {
		smalti_call_add(call, "--quiet");
		smalti_call_add(call, "--output=%s/", s->directory);
	}
}

/* Adds the case's values of the lists; a schedule that is replayed takes the policy's place. */
static void add_lists(const struct sweeping *s, int64_t index, struct smalti_call *call)
{
	char value[64];
	for (int axis = s->replay ? 1 : 0; axis < AXES; axis++)
		if (smalti_sweep_value(&s->sweep, index, axis, value))
			add_text(call, s->sweep.axes[axis].option, value);
	if (s->replay)
		smalti_call_add(call, "--%s=replay:%s", s->sweep.axes[0].option, s->replay);
}

/* Runs a case once; without a trace it is a warm-up. */
static int run_case(struct sweeping *s, int64_t index, const char *trace)
{
	struct smalti_call call;
	if (smalti_call_begin(&call, s->error) < 0)
		return -1;
	s->ran++;
	if (s->options->command)
		add_command(s, &call);
	else
		add_work(s, &call);
	add_lists(s, index, &call);
	add_text(&call, "trace", trace);
	if (s->options->opencl)
		smalti_call_add(&call, "--opencl=%lld", (long long)s->options->opencl);
	SCOPED(free) char *said = smalti_format(s->error, "%s/said", s->directory);
	const int status = said ? smalti_call_run(&call, said, s->error) : -1;
	smalti_call_free(&call);
	return status;
}

static struct smalti_task_schedule *measure_once(struct sweeping *s, int64_t index)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/trace.json", s->directory);
	if (run_case(s, index, path) < 0)
		return NULL;
	struct smalti_task_schedule *schedule = smalti_schedule_read(path, s->error);
	if (schedule && smalti_schedule_measure(schedule, s->error) == 0)
		return schedule;
	smalti_schedule_free(schedule);
	return NULL;
}

static int by_makespan(const void *a, const void *b)
{
	const struct smalti_task_schedule *x = *(struct smalti_task_schedule *const *)a,
					  *y = *(struct smalti_task_schedule *const *)b;
	return (x->makespan > y->makespan) - (x->makespan < y->makespan);
}

static double share(const struct smalti_task_schedule *schedule, int cause)
{
	double sum = 0;
	for (int i = 0; i < schedule->worker_count; i++)
		sum += cause < 0 ? schedule->workers[i].busy : schedule->workers[i].idle[cause];
	return sum / schedule->worker_count / schedule->makespan;
}

static double model_error(const struct smalti_task_schedule *schedule)
{
	struct smalti_schedule_op ops[SMALTI_SCHEDULE_OPS];
	const int count = smalti_schedule_ops(schedule, ops);
	double seconds = 0, deviation = 0;
	for (int i = 0; i < count; i++)
		seconds += ops[i].seconds, deviation += ops[i].deviation;
	return seconds > 0 ? deviation / seconds : (double)NAN;
}

static int say(const struct sweeping *s, int64_t index, struct smalti_task_schedule *schedule, double least)
{
	char name[256];
	smalti_sweep_name(&s->sweep, index, name);
	if (smalti_schedule_bound(schedule, s->error) < 0)
		return -1;
	const struct smalti_bench_value line[COLUMNS] = {
	    {schedule->makespan, NULL},
	    {least, NULL},
	    {schedule->area, NULL},
	    {schedule->path, NULL},
	    {schedule->linear, NULL},
	    {schedule->transfers, NULL},
	    {schedule->latency_median, NULL},
	    {schedule->latency_95, NULL},
	    {schedule->latency_max, NULL},
	    {share(schedule, -1), NULL},
	    {share(schedule, SMALTI_IDLE_DATA), NULL},
	    {share(schedule, SMALTI_IDLE_NONE), NULL},
	    {share(schedule, SMALTI_IDLE_OTHERS), NULL},
	    {share(schedule, SMALTI_IDLE_START), NULL},
	    {share(schedule, SMALTI_IDLE_END), NULL},
	    {schedule->queue, NULL},
	    {(double)schedule->bytes, NULL},
	    {model_error(schedule), NULL},
	    {(double)schedule->count, NULL},
	};
	if (smalti_bench_report_add(s->report, *name ? name : "default", line, NULL, 0, s->error) < 0)
		return -1;
	return s->page ? smalti_schedule_page_add(s->page, *name ? name : "default", schedule, NULL, s->error)
		       : 0;
}

/* The runs of a case, the shortest first. */
struct runs {
	struct smalti_task_schedule **of;
	int count;
};

static void free_runs(struct runs *runs)
{
	for (int i = 0; i < runs->count; i++)
		smalti_schedule_free(runs->of[i]);
	free(runs->of);
}

static struct smalti_task_schedule *median_of(const struct runs *runs)
{
	return runs->of[(runs->count - 1) / 2];
}

/* Runs a case some times; a simulation repeats exactly. */
static int measure_runs(struct sweeping *s, int64_t index, struct runs *runs)
{
	const int repeats = s->options->machine ? 1 : (int)s->options->bench.repeats;
	*runs = (struct runs){smalti_calloc(repeats, sizeof(struct smalti_task_schedule *), s->error), 0};
	for (; runs->of && runs->count < repeats; runs->count++)
		if (!(runs->of[runs->count] = measure_once(s, index)))
			return -1;
	if (!runs->of)
		return -1;
	qsort(runs->of, (size_t)runs->count, sizeof(struct smalti_task_schedule *), by_makespan);
	return 0;
}

/* Shows a case's regret, and what was replayed. */
static int say_regret(const struct sweeping *s, int64_t index, const struct smalti_task_schedule *run,
		      const struct smalti_regret *regret, const struct smalti_task_schedule *replayed)
{
	struct smalti_bench_value line[SMALTI_REGRET_COLUMNS];
	char name[256], replay[272];
	smalti_sweep_name(&s->sweep, index, name);
	if (!*name)
		snprintf(name, sizeof(name), "default");
	snprintf(replay, sizeof(replay), "%s, replayed", name);
	smalti_regret_line(run, regret, line);
	if (smalti_bench_report_add(s->report, name, line, NULL, 0, s->error) < 0)
		return -1;
	if (!s->page)
		return 0;
	if (smalti_schedule_page_add(s->page, name, run, regret, s->error) < 0)
		return -1;
	return smalti_schedule_page_add(s->page, replay, replayed, NULL, s->error);
}

/* Replays the plan: each run has to do what was planned. */
static int replay(struct sweeping *s, int64_t index, const struct smalti_task_schedule *run,
		  struct smalti_regret *regret)
{
	char path[PATH_MAX];
	struct runs runs = {NULL, 0};
	snprintf(path, sizeof(path), "%s/plan.jsonl", s->directory);
	int status = smalti_timetable_write(run, regret->plan, path, s->error);
	s->replay = path;
	if (status == 0)
		status = measure_runs(s, index, &runs);
	s->replay = NULL;
	for (int i = 0; status == 0 && i < runs.count; i++)
		status = smalti_timetable_followed(regret->plan, runs.of[i], s->error);
	if (status == 0) {
		regret->replayed = median_of(&runs)->makespan;
		if (s->page)
			status = smalti_schedule_bound(median_of(&runs), s->error);
	}
	if (status == 0)
		status = say_regret(s, index, run, regret, median_of(&runs));
	free_runs(&runs);
	return status;
}

static int plan_again(struct sweeping *s, int64_t index, struct smalti_task_schedule *run)
{
	struct smalti_regret regret;
	if (smalti_schedule_bound(run, s->error) < 0 || smalti_regret_find(run, &regret, s->error) < 0)
		return -1;
	const int status = replay(s, index, run, &regret);
	smalti_timetable_free(regret.plan);
	return status;
}

static int measure_case(struct sweeping *s, int64_t index)
{
	struct runs runs = {NULL, 0};
	int status = 0;
	for (int64_t warm = 0; status == 0 && !s->options->machine && warm < s->options->warm; warm++)
		status = run_case(s, index, NULL);
	if (status == 0)
		status = measure_runs(s, index, &runs);
	if (status == 0)
		status = s->options->optimal ? plan_again(s, index, median_of(&runs))
					     : say(s, index, median_of(&runs), runs.of[0]->makespan);
	free_runs(&runs);
	return status;
}

static cJSON *facts_of(const struct schedule_options *o)
{
	cJSON *facts = cJSON_CreateObject();
	if (o->machine)
		cJSON_AddStringToObject(facts, "machine", o->machine);
	cJSON_AddStringToObject(facts, "model", o->model ? o->model : "embedded");
	cJSON_AddStringToObject(facts, "precision", smalti_precisions[o->precision]);
	cJSON_AddNumberToObject(facts, "steps", (double)o->steps);
	cJSON_AddNumberToObject(facts, "images", (double)o->images);
	return facts;
}

static int sweep_all(struct sweeping *s)
{
	const struct schedule_options *o = s->options;
	s->report = smalti_bench_report_open(&smalti_bench_schedule_command, &o->bench, facts_of(o),
					     o->optimal ? smalti_regret_columns : columns,
					     o->optimal ? SMALTI_REGRET_COLUMNS : COLUMNS, s->error);
	if (!s->report)
		return -1;
	s->page = o->page ? smalti_schedule_page_open(o->page, o->machine, o->model, s->error) : NULL;
	int status = o->page && !s->page ? -1 : 0;
	for (int64_t i = 0; status == 0 && i < smalti_sweep_cases(&s->sweep); i++)
		status = measure_case(s, i);
	status = smalti_schedule_page_close(s->page, status, s->error);
	return smalti_bench_report_close(
	    s->report,
	    o->optimal ? "From \"run\" to \"place\" is what the run took longer than planned, by cause."
		       : "No schedule takes less than \"work\", \"path\" and \"LP\".",
	    status, s->error);
}

static int measure(const void *options, struct smalti_error *error)
{
	static const char *const names[AXES] = {"sched", "strategy",     "grain",           "tile-tokens",
						"cpus",  "memory-limit", "gpu-memory-limit"};
	struct smalti_sweep_axis axes[AXES];
	struct sweeping s = {.options = options, .sweep = {axes, AXES}, .error = error};
	for (int axis = 0; axis < AXES; axis++)
		axes[axis] = (struct smalti_sweep_axis){names[axis], s.options->lists[axis]};
	if (s.options->machine && s.options->lists[5])
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "--memory-limit is of this machine; simulated ones have --gpu-memory-limit");
	if (s.options->machine && s.options->opencl)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "--opencl is of this machine: a simulated one has the devices of its file");
	if (s.options->machine && s.options->command)
		return smalti_fail(error, SMALTI_EINVAL,
				   "a COMMAND runs on this machine: leave --machine or '%s' out",
				   s.options->command[0]);
	s.directory = smalti_make_temporary_directory("smalti-schedule", error);
	if (!s.directory)
		return -1;
	smalti_signals_catch();
	const int status = sweep_all(&s);
	smalti_remove_directory(s.directory);
	free(s.directory);
	return status;
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	struct schedule_options *o = options;
	if (count)
		o->command = operands;
	return smalti_bench_run(&smalti_bench_schedule_command, measure, options, 0, NULL);
}
