/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <limits.h>

struct starpu_sched_policy;

/* StarPU's scheduling policies that can run graphs: number `index`, NULL behind the last. */
const struct starpu_sched_policy *smalti_policy(int index);
/* Whether a worker may come to be unfit for tasks that wait already: others take them then. */
bool smalti_policy_reconsiders(const char *name);

/* The library of a policy that is shipped; false: there is none of that name, or the user names one by
 * STARPU_SCHED_LIB. */
bool smalti_policy_library(const char *name, char path[PATH_MAX]);

/* Whether StarPU has the policy, Smalti ships it, or the library has it that the environment's
 * STARPU_SCHED_LIB names. -1 with SMALTI_EINVAL. NULL or "": the default, which it has. */
int smalti_policy_check(const char *name, struct smalti_error *error);
