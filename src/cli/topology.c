/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/topology.h"
#include "cli/command.h"
#include "cli/common_rows.h"

struct topology_options {
	bool json;
	struct smalti_session_options session;
};

static const struct topology_options defaults = {.session = SMALTI_SESSION_DEFAULTS};

static const struct smalti_option rows[] = {
    {SMALTI_FLAG(struct topology_options, json), "json", 0, NULL, "print one JSON object"},
    {SMALTI_STRING(struct topology_options, session.policy), "sched", 0, "POLICY",
     "StarPU scheduling policy; default: lws, with devices dmdas"},
    SMALTI_WORKER_ROWS(struct topology_options),
};

static const struct smalti_example examples[] = {
    {"Show the machine and its speed", "smalti topology"},
    {"Print the memory bandwidth of all cores in bytes per second",
     "smalti topology --json | jq .rates[-1].read"},
    {"Use four workers", "smalti topology --cpus=4"},
    {NULL, NULL},
};

/* Reads it from a session that it opens and closes. */
static struct smalti_topology *read_topology(const struct topology_options *options,
					     struct smalti_error *error)
{
	struct smalti_session *session = smalti_session_open(&options->session, error);
	if (!session)
		return NULL;
	struct smalti_topology *topology;
	int status = smalti_topology_read(session, &topology, error);
	if (smalti_session_close(session, error) < 0 || status < 0) {
		smalti_topology_free(topology);
		return NULL;
	}
	return topology;
}

static enum smalti_exit run(void *values, int count, char **operands)
{
	const struct topology_options *options = values;
	if (count)
		return smalti_usage_error(&smalti_topology_command, "unexpected operand '%.99s'",
					  operands[0]);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_topology *topology = read_topology(options, &error);
	int status = topology ? 0 : -1;
	if (topology && options->json)
		status = smalti_topology_print_json(topology, stdout, &error);
	else if (topology)
		smalti_topology_print(topology, stdout);
	smalti_topology_free(topology);
	if (status == 0)
		return smalti_finish_stdout();
	return smalti_command_fail(&smalti_topology_command, &error);
}

const struct smalti_command smalti_topology_command = {
    .name = "smalti topology",
    .summary = "show the machine, its workers and their speed, and the libraries",
    .operands = "",
    .description = "Shows the processors, caches, memory and GPUs that hwloc finds, StarPU's workers and "
		   "memory nodes, the memory bandwidth and f32 arithmetic rate of one worker and of all "
		   "workers, the libraries in use, and the scheduling policies.\n\nThe measurement takes "
		   "less than a second. Other programs that run at the same time lower the measured rates.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};
