/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* StarPU's disk: tiles that main memory has no room for lie in a file of the directory that has no name. Its
 * own operations end the program when the disk is full; with these a tile that cannot be written, or read
 * again, fails all task groups that there are then, as any of them may need it. Later ones go on. */

struct smalti_session;

/* With StarPU running, which closes it when it shuts down. SMALTI_EIO where the directory cannot be used. */
int smalti_scratch_open(struct smalti_session *session, const char *directory, struct smalti_error *error);
