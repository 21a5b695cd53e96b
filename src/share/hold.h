/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* One process at a time makes what a directory has: it holds the directory's lock (share/lock.h) for as long
 * as that takes, and the next one is told who does. */
struct smalti_hold;

/* Makes the directory if it is not there. `makes` is what the process does there, for a person: "exports".
 * SMALTI_EINVAL: another process holds the directory. */
struct smalti_hold *smalti_hold_open(const char *directory, const char *makes, struct smalti_error *error);
/* Removes the lock's file, too. NULL is fine. */
void smalti_hold_close(struct smalti_hold *hold);
SCOPED_RELEASE(struct smalti_hold *, smalti_hold_close)
/* Removes the lock's file if a killed process has left it. */
void smalti_hold_clean(const char *directory);
