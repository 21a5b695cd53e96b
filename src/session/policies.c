/* SPDX-License-Identifier: Apache-2.0 */
#include "session/policies.h"
#include "base/shipped.h"
#include "rt/replay.h"

#include <dlfcn.h>
#include <strings.h>

#include <starpu.h>

/* A policy for StarPU's own tests: it keeps all tasks back until the program calls starpu_do_schedule(). */
static const char test_policy[] = "graph_test";
static const char library_variable[] = "STARPU_SCHED_LIB";

const struct starpu_sched_policy *smalti_policy(int index)
{
	for (struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies(); *policy; policy++)
		if (strcmp((*policy)->policy_name, test_policy) != 0 && index-- == 0)
			return *policy;
	return NULL;
}

/* Tells whether a policy checks a worker only where another one may still get the task. Others would keep it
 * for the worker that they chose before, or end the program. */
bool smalti_policy_reconsiders(const char *name)
{
	static const char *const names[] = {"lws",  "ws",    "eager", "prio",  "dm",
					    "dmda", "dmdar", "dmdas", "dmdasd"};
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

bool smalti_policy_library(const char *name, char path[PATH_MAX])
{
	/* the build tree (libtool runs programs from .libs), then a relocated installation */
	static const char *const places[] = {"policies/.libs", "../policies/.libs", "../lib/smalti/policies",
					     "smalti/policies", "policies"};
	char relative[COUNT_OF(places)][PATH_MAX];
	const char *near[COUNT_OF(places)];
	if (!name || strchr(name, '/') || getenv(library_variable))
		return false;
	for (size_t i = 0; i < COUNT_OF(places); i++) {
		snprintf(relative[i], PATH_MAX, "%s/%s.so", places[i], name);
		near[i] = relative[i];
	}
	if (smalti_find_beside(near, COUNT_OF(places), path))
		return true;
	snprintf(path, PATH_MAX, "%s/%s.so", SMALTI_POLICIES, name);
	return access(path, R_OK) == 0;
}

/* Returns 1 if the user's or a shipped library has it, 0 if not or if there is none. */
static int look_into_library(const char *name, struct smalti_error *error)
{
	static const char symbol[] = "starpu_get_sched_lib_policy";
	char shipped[PATH_MAX];
	const char *path = smalti_policy_library(name, shipped) ? shipped : getenv(library_variable);
	if (!path)
		return 0;
	void *library = dlopen(path, RTLD_NOW);
	if (!library)
		return smalti_fail(error, SMALTI_EINVAL, "%s cannot be loaded: %s", library_variable,
				   dlerror());
	struct starpu_sched_policy *(*find)(const char *name);
	*(void **)&find = dlsym(library, symbol);
	const bool found = find && find(name);
	dlclose(library);
	if (!find)
		return smalti_fail(error, SMALTI_EINVAL, "%s=%.200s has no function %s()", library_variable,
				   path, symbol);
	return found;
}

static int refuse(const char *name, struct smalti_error *error)
{
	static const char modular[] = "modular-";
	char known[SMALTI_ERROR_LENGTH / 2] = "", meant[64] = "";
	int others = 0;
	const struct starpu_sched_policy *policy;
	for (int i = 0; (policy = smalti_policy(i)); i++) {
		if (strcasecmp(policy->policy_name, name) == 0)
			snprintf(meant, sizeof(meant), " (did you mean '%s'?)", policy->policy_name);
		if (strncmp(policy->policy_name, modular, strlen(modular)) == 0 ||
		    strlen(known) + strlen(policy->policy_name) + 3 > sizeof(known))
			others++;
		else
			smalti_append(known, sizeof(known), ", ", "%s", policy->policy_name);
	}
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "scheduling policy '%.99s' is not known to StarPU%s; it has %s and %d others, which "
	    "'smalti topology' lists",
	    name, meant, known, others);
}

int smalti_policy_check(const char *name, struct smalti_error *error)
{
	if (!name || !*name || smalti_replay_file(name))
		return 0;
	const int own = look_into_library(name, error);
	if (own)
		return own < 0 ? -1 : 0;
	if (strcmp(name, test_policy) == 0)
		return smalti_fail(error, SMALTI_EINVAL,
				   "scheduling policy '%s' is for StarPU's own tests: it never starts a task",
				   name);
	const struct starpu_sched_policy *policy;
	for (int i = 0; (policy = smalti_policy(i)); i++)
		if (strcmp(policy->policy_name, name) == 0)
			return 0;
	return refuse(name, error);
}
