/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/slowdown.h"
#include "base/clock.h"
#include "base/parse.h"

#include <errno.h>
#include <strings.h>
#include <sys/prctl.h>

#include <starpu.h>

enum { MOST = 1000, NAME_LENGTH = 32 };

const char smalti_slowdown_variable[] = "SMALTI_SLOWDOWN";

const char *smalti_slowdown_text(void)
{
	const char *text = getenv(smalti_slowdown_variable);
	return text && *text ? text : NULL;
}

/* Writes a name as `smalti topology` does: the kind and a number from 0 on. */
static void name_worker(int worker, char name[NAME_LENGTH])
{
	snprintf(name, NAME_LENGTH, "%s%d", starpu_worker_get_type_as_string(starpu_worker_get_type(worker)),
		 starpu_worker_get_devid(worker));
}

static int refuse_worker(const char *item, struct smalti_error *error)
{
	char known[SMALTI_ERROR_LENGTH / 4] = "", name[NAME_LENGTH];
	for (int worker = 0; worker < (int)starpu_worker_get_count(); worker++) {
		const size_t used = strlen(known);
		name_worker(worker, name);
		snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "", name);
	}
	return smalti_fail(error, SMALTI_EINVAL,
			   "the environment's %s: expected a worker of %s, found '%.99s'",
			   smalti_slowdown_variable, known, item);
}

/* Reads an item, WORKER:FACTOR. */
static int read_item(const char *item, double *factors, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	const int length = (int)strcspn(item, ":");
	double factor;
	if (!item[length])
		return smalti_fail(error, SMALTI_EINVAL,
				   "the environment's %s: expected items like \"cpu1:3\", found '%.99s'",
				   smalti_slowdown_variable, item);
	if (smalti_parse_double(item + length + 1, 1, MOST, &factor, &cause) < 0)
		return smalti_fail(error, SMALTI_EINVAL, "the environment's %s: '%.99s': %s",
				   smalti_slowdown_variable, item, cause.message);
	for (int worker = 0; worker < (int)starpu_worker_get_count(); worker++) {
		char name[NAME_LENGTH];
		name_worker(worker, name);
		if (strncasecmp(name, item, (size_t)length) == 0 && !name[length]) {
			factors[worker] = factor;
			return 0;
		}
	}
	return refuse_worker(item, error);
}

static int read_items(const char *text, double *factors, struct smalti_error *error)
{
	char *items = smalti_format(error, "%s", text), *rest = items, *item;
	int status = items ? 0 : -1;
	while (status == 0 && (item = strsep(&rest, ",")))
		status = read_item(item, factors, error);
	free(items);
	return status;
}

double *smalti_slowdown_new(struct smalti_error *error)
{
	const int workers = (int)starpu_worker_get_count();
	const char *text = smalti_slowdown_text();
	double *factors = smalti_calloc(workers, sizeof(*factors), error);
	for (int worker = 0; factors && worker < workers; worker++)
		factors[worker] = 1;
	if (!factors || !text || read_items(text, factors, error) == 0)
		return factors;
	free(factors);
	return NULL;
}

void smalti_slowdown_wait(double factor, double seconds)
{
	const struct timespec until = smalti_deadline((int64_t)(1e9 * (factor - 1) * seconds));
	prctl(PR_SET_TIMERSLACK, 1); /* for this thread: short tasks would wait 50 µs too long */
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}
