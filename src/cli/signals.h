/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/session.h"

/* How a long command stops: the first SIGINT or SIGTERM asks to finish what runs, the second to drop it, and
 * the program ends soon after whatever hangs; a third ends it at once. What comes within a second of one
 * counts as the same. A closed pipe and a file past the size limit are failed writes, not the end of the
 * program. */
void smalti_signals_catch(void);

/* From the first signal on, reads of this descriptor find the end of the file, also one that is waiting. -1
 * and errno when that cannot be prepared. */
int smalti_signals_end_reads(int file);

/* What the first signal does besides (NULL: nothing); called in the handler. */
void smalti_signals_first(void (*act)(void *user), void *user);
/* What the second signal does besides (NULL: nothing); called in the handler. While there is something, the
 * message of the first signal says so. */
void smalti_signals_second(void (*act)(void *user), void *user);

/* What the first signal asks to finish may take so long (0, the default: as it needs); then it is dropped, as
 * by a second signal. */
void smalti_signals_finish_within(int seconds);

/* "SIGINT", "SIGTERM" or, while none came, NULL. */
const char *smalti_signals_caught(void);
/* Says in the place of an error that the command was stopped, where a signal came: what failed then followed
 * from it. */
void smalti_signals_blame(struct smalti_error *error);

/* A session whose threads never receive a signal: it interrupts the main thread's reads. NULL with an error.
 */
struct smalti_session *smalti_held_session(const struct smalti_session_options *options,
					   struct smalti_error *error);
