/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/held_session.h"

#include "rt/session.h"

#include <signal.h>
#include <stdio.h>

static void mask(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(how, &set, NULL);
}

static void note_crowd(const struct smalti_session *session)
{
	const int places = smalti_session_processors(session);
	if (smalti_session_workers(session) > places)
		fprintf(stderr, "smalti: %d workers share %d processor%s, which is slower than one on each\n",
			smalti_session_workers(session), places, places == 1 ? "" : "s");
}

struct smalti_session *smalti_held_session(const struct smalti_session_options *options,
					   struct smalti_error *error)
{
	mask(SIG_BLOCK);
	struct smalti_session *session = smalti_session_open(options, error);
	mask(SIG_UNBLOCK);
	if (session)
		note_crowd(session);
	return session;
}
