/* SPDX-License-Identifier: Apache-2.0 */
#include "session/reproducible.h"

#include <starpu.h>

enum { NAME = 256 };

/* Reads the model of a device from StarPU's name of its worker: "CUDA 0.0 (NAME 79.1 GiB BUS)". */
static void read_model(int worker, char model[NAME])
{
	char name[NAME];
	starpu_worker_get_name(worker, name, sizeof(name));
	char *begin = strchr(name, '('), *end = strstr(name, " GiB");
	begin = begin ? begin + 1 : name;
	if (end)
		*end = '\0';
	if (end && (end = strrchr(begin, ' '))) /* before the size of its memory */
		*end = '\0';
	snprintf(model, NAME, "%s", begin);
}

int smalti_reproducible_check(const struct smalti_session *session, struct smalti_error *error)
{
	char first[NAME] = "", model[NAME];
	int known = -1;
	for (int worker = 0; session->reproducible && worker < session->workers; worker++) {
		if (!session->devices[worker])
			continue;
		read_model(worker, model);
		if (known < 0) {
			known = worker;
			memcpy(first, model, sizeof(first));
		}
		if (starpu_worker_get_type(worker) != starpu_worker_get_type(known) ||
		    strcmp(first, model) != 0)
			return smalti_fail(
			    error, SMALTI_EUNSUPPORTED,
			    "reproducible results need devices of one kind, found %s '%.80s' and "
			    "%s '%.80s': choose some of the same (--cuda, --opencl, "
			    "CUDA_VISIBLE_DEVICES)",
			    starpu_worker_get_type_as_string(starpu_worker_get_type(known)), first,
			    starpu_worker_get_type_as_string(starpu_worker_get_type(worker)), model);
	}
	return 0;
}
