/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/simulator.h"
#include "base/file.h"
#include "base/json.h"
#include "base/shipped.h"
#include "cli/signals.h"
#include "jobs/precision.h"
#include "simulation/machine.h"
#include "train/identity.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/wait.h>

enum { MAX_ARGUMENTS = 40, MAX_OUTPUT = 1 << 20 };
static const char host[] = "machine";

extern char **environ;

int smalti_simulator_find(char path[PATH_MAX], struct smalti_error *error)
{
	/* the build trees, then a relocated installation */
	static const char *const near[] = {"../build-simgrid/smalti-sim", "../../build-simgrid/smalti-sim",
					   "../libexec/smalti/smalti-sim"};
	const char *chosen = getenv("SMALTI_SIM");
	if (chosen && *chosen) {
		snprintf(path, PATH_MAX, "%s", chosen);
		return 0;
	}
	if (smalti_find_beside(near, COUNT_OF(near), path))
		return 0;
	snprintf(path, PATH_MAX, "%s/smalti-sim", SMALTI_LIBEXECDIR);
	if (access(path, X_OK) == 0)
		return 0;
	return smalti_fail(
	    error, SMALTI_ENODEV,
	    "smalti-sim, which simulates, is neither beside the program nor in %s: build it with "
	    "'scripts/packages simgrid && scripts/build --simgrid', or set SMALTI_SIM to its path",
	    SMALTI_LIBEXECDIR);
}

struct arguments {
	char *items[MAX_ARGUMENTS + 1]; /* ended by NULL */
	int count;
	bool failed;
};

__attribute__((format(printf, 2, 3))) static void add(struct arguments *arguments, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	if (arguments->count == MAX_ARGUMENTS ||
	    vasprintf(&arguments->items[arguments->count], format, values) < 0)
		arguments->failed = true;
	else
		arguments->count++;
	va_end(values);
}

static void add_text(struct arguments *arguments, const char *name, const char *value)
{
	if (value)
		add(arguments, "--%s=%s", name, value);
}

static void add_number(struct arguments *arguments, const char *name, int64_t value)
{
	add(arguments, "--%s=%" PRId64, name, value);
}

static void fill_training(struct arguments *arguments, const struct smalti_simulated_training *training)
{
	add_number(arguments, "batch", training->batch);
	add_number(arguments, "lanes", training->lanes);
	add_number(arguments, "micro", training->micro);
	add_text(arguments, "recompute", smalti_recomputations[training->recomputation]);
	add_text(arguments, "optimizer", smalti_optimizers[training->optimizer]);
	add_number(arguments, "lora-rank", training->lora_rank);
	add_text(arguments, "lora-targets", training->lora_targets);
}

static void fill_extraction(struct arguments *arguments, const struct smalti_simulated_extraction *extraction)
{
	add_number(arguments, "items", extraction->items);
	add_number(arguments, "img-size", extraction->image_size);
	if (extraction->t5)
		add(arguments, "--t5");
	if (extraction->vae)
		add(arguments, "--vae");
}

static void fill_job(struct arguments *arguments, const struct smalti_simulate_options *o)
{
	if (o->job == SMALTI_SIMULATED_IMAGES)
		return;
	add_number(arguments, "caption-tokens", o->caption_tokens);
	if (o->job == SMALTI_SIMULATED_TRAINING)
		fill_training(arguments, &o->training);
	else
		fill_extraction(arguments, &o->extraction);
	add(arguments, "%s", smalti_simulated_jobs[o->job]);
}

/* Fills in the simulator's own options, and the one for the log, which StarPU's library takes. */
static void fill(struct arguments *arguments, const char *program, const struct smalti_simulate_options *o,
		 const char *policy, const char *machine)
{
	static const char *const grains[] = {"auto", "operation", "half-block", "block", "pass"};
	const struct smalti_request *request = &o->request;
	add(arguments, "%s", program);
	add(arguments, "--log=root.threshold:error");
	add_text(arguments, "machine", machine);
	add_text(arguments, "sched", policy);
	add_text(arguments, "measured", o->measured);
	add_number(arguments, "cpus", o->cpus);
	add_number(arguments, "gpus", o->gpus);
	if (o->blocking)
		add(arguments, "--blocking");
	if (o->gpu_memory_limit)
		add_number(arguments, "gpu-memory-limit", o->gpu_memory_limit);
	add_text(arguments, "model", o->model);
	add_text(arguments, "precision", smalti_precisions[o->precision]);
	add_text(arguments, "prompt", request->prompt);
	if (request->width)
		add(arguments, "--size=%" PRId64 "x%" PRId64, request->width, request->height);
	add_number(arguments, "images", request->images);
	add_number(arguments, "steps", request->steps);
	add(arguments, "--guidance=%.17g", request->guidance);
	add_number(arguments, "tile-tokens", request->tile_tokens);
	add_number(arguments, "tile-rows", request->tile_rows);
	add_text(arguments, "grain", grains[request->grain]);
	add_text(arguments, "shares", request->shares);
	add_text(arguments, "strategy", request->strategy);
	add_text(arguments, "scheduler", request->scheduler);
	add_number(arguments, "patches", request->patches);
	add_number(arguments, "warmup", request->warmup);
	add_text(arguments, "trace", o->trace);
	fill_job(arguments, o);
}

static void free_arguments(struct arguments *arguments)
{
	for (int i = 0; i < arguments->count; i++)
		free(arguments->items[i]);
}

static bool begins_with_any(const char *text, const char *const *beginnings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(text, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

/* Returns the variables that mean something to the simulator, ended by NULL, without the machine's (free the
 * array alone): their number moves what StarPU allocates later, and StarPU decides by the order of addresses.
 */
static char **kept_variables(int64_t more, struct smalti_error *error)
{
	static const char *const theirs[] = {"STARPU_SCHED=",
					     "STARPU_NCPU=",
					     "STARPU_NCPUS=",
					     "STARPU_NCUDA=",
					     "STARPU_PERF_MODEL_PATH=",
					     "STARPU_LIMIT_CPU_MEM=",
					     SMALTI_MACHINE_DIRECTORY "=",
					     SMALTI_MACHINE_HOST "="};
	static const char *const kept[] = {"STARPU_", "SMALTI_", "LD_", "HOME=", "PATH=", "TMPDIR="};
	int64_t count = 0;
	while (environ[count])
		count++;
	char **variables = smalti_calloc(count + more + 1, sizeof(*variables), error);
	char **next = variables;
	for (char **variable = environ; variables && *variable; variable++)
		if (begins_with_any(*variable, kept, COUNT_OF(kept)) &&
		    !begins_with_any(*variable, theirs, COUNT_OF(theirs)))
			*next++ = *variable;
	return variables;
}

/* Starts the simulator and returns its process, or -1. */
static pid_t start(char *const *arguments, char *const *variables, int output, int errors,
		   struct smalti_error *error)
{
	posix_spawn_file_actions_t actions;
	pid_t child = -1;
	int status = posix_spawn_file_actions_init(&actions);
	if (status == 0) {
		posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
		posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
		status = posix_spawn(&child, arguments[0], &actions, NULL, arguments, variables);
		posix_spawn_file_actions_destroy(&actions);
	}
	if (status == 0)
		return child;
	return smalti_fail(error, SMALTI_EIO, "%s cannot be run: %s", arguments[0], strerror(status));
}

/* Returns what is written there, a NUL behind it. */
static char *read_all(int file, size_t *length, struct smalti_error *error)
{
	char *text = smalti_calloc(MAX_OUTPUT + 1, 1, error);
	*length = 0;
	for (ssize_t got = 1; text && got > 0 && *length<MAX_OUTPUT; *length += got> 0 ? (size_t)got : 0)
		got = read(file, text + *length, MAX_OUTPUT - *length);
	return text;
}

/* Fails with the last line, which is the simulator's; StarPU and SimGrid may have written before it. */
static int fail(int status, FILE *errors, const char *program, struct smalti_error *error)
{
	char line[SMALTI_ERROR_LENGTH] = "";
	rewind(errors);
	while (fgets(line, sizeof(line), errors))
		line[strcspn(line, "\n")] = '\0';
	if (!WIFEXITED(status))
		return smalti_fail(error, SMALTI_EIO, "%s was ended by signal %d: %s", program,
				   WTERMSIG(status), line);
	return smalti_fail(error, WEXITSTATUS(status) == SMALTI_EXIT_USAGE ? SMALTI_EINVAL : SMALTI_EIO, "%s",
			   *line ? line : "the simulator failed without a word");
}

static int wait_for(pid_t child, FILE *errors, const char *program, struct smalti_error *error)
{
	int status;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return smalti_fail_errno(error, "%s: nothing is known of its end", program);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return fail(status, errors, program, error);
}

static void end(void *child)
{
	kill(*(const pid_t *)child, SIGKILL);
}

/* Returns the child's standard output; a signal ends the child. */
static char *listen_to(pid_t child, int file, size_t *length, struct smalti_error *error)
{
	smalti_signals_first(end, &child);
	if (smalti_signals_caught()) /* before that */
		end(&child);
	char *text = read_all(file, length, error);
	smalti_signals_first(NULL, NULL);
	return text;
}

static cJSON *run(char *const *arguments, char *const *variables, struct smalti_error *error)
{
	int ends[2];
	size_t length = 0;
	SCOPED(fclose) FILE *errors = tmpfile();
	if (!errors || pipe2(ends, O_CLOEXEC) < 0) {
		smalti_fail_errno(error, "no pipe to the simulator");
		return NULL;
	}
	const pid_t child = start(arguments, variables, ends[1], fileno(errors), error);
	close(ends[1]);
	SCOPED(free) char *text = child > 0 ? listen_to(child, ends[0], &length, error) : NULL;
	close(ends[0]);
	if (child < 0 || wait_for(child, errors, arguments[0], error) < 0 || !text)
		return NULL;
	if (length == 0) {
		smalti_fail(
		    error, SMALTI_EIO,
		    "all that is simulated waits for something else, for ever: StarPU comes to that now "
		    "and then where memory is short; another limit to it, or tiling, helps");
		return NULL;
	}
	return smalti_json_parse(text, length, error);
}

/* Runs the simulator on the machine whose files are in the directory. */
static cJSON *run_on(const char *directory, char *const *arguments, struct smalti_error *error)
{
	enum { OWN = 2 };
	SCOPED(free) char *place = smalti_format(error, SMALTI_MACHINE_DIRECTORY "=%s", directory);
	SCOPED(free) char *name = smalti_format(error, SMALTI_MACHINE_HOST "=%s", host);
	SCOPED(free) char **variables = place && name ? kept_variables(OWN, error) : NULL;
	if (!variables)
		return NULL;
	char **end = variables;
	while (*end)
		end++;
	end[0] = place;
	end[1] = name;
	return run(arguments, variables, error);
}

static cJSON *run_in(const char *directory, const struct smalti_simulate_options *options, const char *policy,
		     const struct smalti_simulated_machine *machine, struct smalti_error *error)
{
	char program[PATH_MAX];
	cJSON *outcome = NULL;
	struct arguments arguments = {.count = 0};
	SCOPED(free) char *path = smalti_machine_path(options->machine, error);
	if (!path || smalti_simulator_find(program, error) < 0 ||
	    smalti_machine_write(machine, directory, host, error) < 0)
		return NULL;
	fill(&arguments, program, options, policy, path);
	if (arguments.failed)
		smalti_fail(error, SMALTI_ENOMEM, "no memory for the simulator's options");
	else
		outcome = run_on(directory, arguments.items, error);
	free_arguments(&arguments);
	return outcome;
}

/* Refuses more workers than the machine has. */
static int check_workers(const struct smalti_simulate_options *options,
			 const struct smalti_simulated_machine *machine, struct smalti_error *error)
{
	const struct {
		const char *name;
		int64_t wanted, has;
	} kinds[] = {{"CPU workers", options->cpus, machine->cpu.count},
		     {"GPUs", options->gpus, smalti_machine_gpus(machine)}};
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (kinds[i].wanted > kinds[i].has)
			return smalti_fail(error, SMALTI_EINVAL,
					   "%s: expected at most %" PRId64 ", which '%s' has, found %" PRId64,
					   kinds[i].name, kinds[i].has, machine->name, kinds[i].wanted);
	return 0;
}

cJSON *smalti_simulator_run(const struct smalti_simulate_options *options, const char *policy,
			    const struct smalti_simulated_machine *machine, struct smalti_error *error)
{
	if (check_workers(options, machine, error) < 0)
		return NULL;
	SCOPED(free) char *directory = smalti_make_temporary_directory("smalti-sim", error);
	if (!directory)
		return NULL;
	cJSON *outcome = run_in(directory, options, policy, machine, error);
	smalti_remove_directory(directory);
	return outcome;
}
