/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/slave.h"
#include "kernels/isa.h"
#include "rt/perf_directory.h"
#include "rt/pool.h"
#include "rt/task_message.h"
#include "rt/tile_forms.h"

#include <starpu.h>

static struct smalti_pool *pool; /* of locals; StarPU allocates the tiles */

#ifdef STARPU_USE_TCPIP_MASTER_SLAVE
#define FOUND_BY_NAME __attribute__((visibility("default")))
enum { HAS_SLAVES = true };
#else
#define FOUND_BY_NAME
enum { HAS_SLAVES = false };
#endif

/* Serves the master. StarPU ends the process, inside starpu_init(), when the master has ended. */
static int serve(struct smalti_error *error)
{
	struct smalti_perf_directory directory = {NULL, false};
	struct smalti_environment changes = {.count = 0};
	struct starpu_conf conf;
	if (!getenv("STARPU_TCPIP_MS_SLAVES"))
		return smalti_fail(error, SMALTI_EINVAL, "STARPU_TCPIP_MS_SLAVES has to be their number");
	starpu_conf_init(&conf);
	conf.nopencl = conf.ncuda = conf.nhip = 0;
	smalti_forms_announce();
	/* The directory is also the master's: both must measure the bus, or neither. */
	if (smalti_isa_check(error) < 0 || !(pool = smalti_pool_new(0, error)) ||
	    smalti_environment_hide_plugin(&changes, error) < 0 ||
	    smalti_perf_directory_open(&directory, &changes, error) < 0)
		return -1;
	return smalti_fail(error, SMALTI_ENODEV, "StarPU did not start (%d)", starpu_init(&conf));
}

void smalti_slave_serve(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (!HAS_SLAVES || !getenv("STARPU_TCPIP_MS_MASTER"))
		return;
	if (serve(&error) < 0)
		fprintf(stderr, "slave: %s\n", error.message);
	exit(EXIT_FAILURE);
}

bool smalti_slaves_serve(void)
{
	return starpu_tcpip_ms_worker_get_count() > 0;
}

/* Runs for a task group of the master, which gets the error back. */
FOUND_BY_NAME void smalti_task_run_slave(void *interfaces[], void *argument)
{
	static _Thread_local struct smalti_error error;
	const struct smalti_message *message = argument;
	void *slots[SMALTI_TASK_TILES] = {NULL};
	for (int i = 0; i < message->tiles; i++)
		slots[i] = smalti_formed_of(interfaces[i]) ? smalti_formed_device_memory(interfaces[i]).memory
							   : (void *)STARPU_VECTOR_GET_PTR(interfaces[i]);
	if (smalti_task_run_on_cpu(message, pool, NULL, slots, &error) == 0)
		return;
	struct starpu_task *task = starpu_task_get_current();
	task->cl_ret = &error;
	task->cl_ret_size = sizeof(error);
}
