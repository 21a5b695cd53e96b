/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/session.h"

/* Lets a long command stop in steps. The first SIGINT or SIGTERM asks to finish what runs. The second drops
 * it, and the program ends soon, whatever hangs. A third ends it at once. A signal within a second of one
 * counts as that one. A closed pipe and a file past the size limit are failed writes, not the end of the
 * program. */
void smalti_signals_catch(void);

/* Makes reads of this descriptor, also one that waits, find the end of the file from the first signal on.
 * Returns -1 with errno if that cannot be prepared. */
int smalti_signals_end_reads(int file);

/* Sets what the first signal does besides (NULL: nothing); called in the handler. */
void smalti_signals_first(void (*act)(void *user), void *user);
/* Sets what the second signal does besides (NULL: nothing); called in the handler. If set, the first signal
 * prints that a second one drops the work. */
void smalti_signals_second(void (*act)(void *user), void *user);

/* Limits the seconds of finishing after the first signal (0, the default: no limit); then the work is
 * dropped, as by a second signal. */
void smalti_signals_finish_within(int seconds);

/* Returns "SIGINT", "SIGTERM" or, while none came, NULL. */
const char *smalti_signals_caught(void);
/* Tells whether a second one came. */
bool smalti_signals_dropped(void);
/* Replaces an error by one that the command was stopped, if a signal came: the failure followed from it. */
void smalti_signals_blame(struct smalti_error *error);

/* Opens a session whose threads never receive a signal: it interrupts the main thread's reads. NULL with an
 * error. */
struct smalti_session *smalti_held_session(const struct smalti_session_options *options,
					   struct smalti_error *error);
