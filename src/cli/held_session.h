/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_HELD_SESSION_H
#define SMALTI_CLI_HELD_SESSION_H

#include "smalti/session.h"

/* A session whose threads never receive a signal: it interrupts the main thread's reads. NULL with an error.
 */
struct smalti_session *smalti_held_session(const struct smalti_session_options *options,
					   struct smalti_error *error);

#endif
