/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/simulator.h"
#include "base/file.h"
#include "base/json.h"
#include "base/shipped.h"
#include "cli/signals.h"
#include "jobs/precision.h"
#include "simulation/machine.h"
#include "train/identity.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

enum { MAX_ARGUMENTS = 32, MAX_OUTPUT = 1 << 20 };
static const char host[] = "machine";

extern char **environ;

static int find_program(char path[PATH_MAX], struct smalti_error *error)
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

/* Keeps only the variables that mean something to the simulator: their number moves what StarPU allocates
 * later, and StarPU decides by the order of addresses. */
static void leave_out_variables(void)
{
	static const char *const theirs[] = {"STARPU_SCHED",           "STARPU_NCPU",
					     "STARPU_NCPUS",           "STARPU_NCUDA",
					     "STARPU_PERF_MODEL_PATH", "STARPU_LIMIT_CPU_MEM"};
	static const char *const kept[] = {"STARPU_", "SMALTI_", "LD_", "HOME=", "PATH=", "TMPDIR="};
	for (size_t i = 0; i < COUNT_OF(theirs); i++)
		unsetenv(theirs[i]);
	char **left = environ;
	for (char **variable = environ; *variable; variable++)
		for (size_t i = 0; i < COUNT_OF(kept); i++)
			if (strncmp(*variable, kept[i], strlen(kept[i])) == 0)
				*left++ = *variable;
	*left = NULL;
}

/* Runs in the child: does not return. */
static void become(char *const *arguments, const char *directory, int output, int errors)
{
	leave_out_variables();
	if (dup2(output, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0 &&
	    setenv(SMALTI_MACHINE_DIRECTORY, directory, 1) == 0 && setenv(SMALTI_MACHINE_HOST, host, 1) == 0)
		execv(arguments[0], arguments);
	fprintf(stderr, "%s cannot be run: %s\n", arguments[0], strerror(errno));
	_exit(SMALTI_EXIT_FAILED);
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

static cJSON *run(char *const *arguments, const char *directory, struct smalti_error *error)
{
	int ends[2];
	size_t length;
	SCOPED(fclose) FILE *errors = tmpfile();
	if (!errors || pipe(ends) < 0) {
		smalti_fail_errno(error, "no pipe to the simulator");
		return NULL;
	}
	const pid_t child = fork();
	if (child == 0)
		become(arguments, directory, ends[1], fileno(errors));
	close(ends[1]);
	SCOPED(free) char *text = child > 0 ? listen_to(child, ends[0], &length, error) : NULL;
	close(ends[0]);
	if (child < 0)
		smalti_fail_errno(error, "the simulator cannot be started");
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

static cJSON *run_in(const char *directory, const struct smalti_simulate_options *options, const char *policy,
		     const struct smalti_simulated_machine *machine, struct smalti_error *error)
{
	char program[PATH_MAX];
	cJSON *outcome = NULL;
	struct arguments arguments = {.count = 0};
	SCOPED(free) char *path = smalti_machine_path(options->machine, error);
	if (!path || find_program(program, error) < 0 ||
	    smalti_machine_write(machine, directory, host, error) < 0)
		return NULL;
	fill(&arguments, program, options, policy, path);
	if (arguments.failed)
		smalti_fail(error, SMALTI_ENOMEM, "no memory for the simulator's options");
	else
		outcome = run(arguments.items, directory, error);
	free_arguments(&arguments);
	return outcome;
}

cJSON *smalti_simulator_run(const struct smalti_simulate_options *options, const char *policy,
			    const struct smalti_simulated_machine *machine, struct smalti_error *error)
{
	SCOPED(free) char *directory = smalti_make_temporary_directory("smalti-sim", error);
	if (!directory)
		return NULL;
	cJSON *outcome = run_in(directory, options, policy, machine, error);
	smalti_remove_directory(directory);
	return outcome;
}
