/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* StarPU's disk: tiles that main memory has no room for lie in an unnamed file of the directory. StarPU's own
 * disk operations end the program when the disk is full. With these a tile that cannot be written, or read
 * again, fails all existing task groups, as any of them may need it. Later groups continue. */

struct smalti_session;

/* Opens the disk while StarPU runs, which closes it at shutdown. SMALTI_EIO where the directory cannot be
 * used. */
int smalti_scratch_open(struct smalti_session *session, const char *directory, struct smalti_error *error);
