/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <limits.h>

struct starpu_sched_policy;

/* Returns number `index` of StarPU's scheduling policies that can run graphs, NULL after the last one. */
const struct starpu_sched_policy *smalti_policy(int index);
/* Tells whether a worker may become unfit for tasks that already wait, so that others take them. */
bool smalti_policy_reconsiders(const char *name);

/* Finds the library of a shipped policy; false: there is none of that name, or the user names a library by
 * STARPU_SCHED_LIB. */
bool smalti_policy_library(const char *name, char path[PATH_MAX]);

/* Checks that StarPU has the policy, that Smalti ships it, or that the library of the environment's
 * STARPU_SCHED_LIB has it. -1 with SMALTI_EINVAL. NULL or "" is the default, which exists. */
int smalti_policy_check(const char *name, struct smalti_error *error);
