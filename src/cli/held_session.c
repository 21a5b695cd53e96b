/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/held_session.h"

#include <signal.h>
#include <stddef.h>

static void mask(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(how, &set, NULL);
}

struct smalti_session *smalti_held_session(const struct smalti_session_options *options,
					   struct smalti_error *error)
{
	mask(SIG_BLOCK);
	struct smalti_session *session = smalti_session_open(options, error);
	mask(SIG_UNBLOCK);
	return session;
}
