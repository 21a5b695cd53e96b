/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t caught;
static void (*volatile second)(void *user);
static void *volatile second_user;

static volatile int reading = -1, nothing = -1;

static void handle(int number)
{
	void (*act)(void *user) = second;
	const int cause = errno;
	if (caught && act)
		act(second_user);
	if (!caught && reading >= 0)
		dup2(nothing, reading); /* a read that has not begun yet must not wait, either */
	caught = number;
	errno = cause;
}

int smalti_signals_end_reads(int file)
{
	if (nothing < 0)
		nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	reading = nothing < 0 ? -1 : file;
	return nothing < 0 ? -1 : 0;
}

void smalti_signals_catch(void)
{
	struct sigaction action = {.sa_handler = handle}; /* no SA_RESTART: reads are interrupted */
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGINT);
	sigaddset(&action.sa_mask, SIGTERM);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

void smalti_signals_second(void (*act)(void *user), void *user)
{
	second = NULL;
	second_user = user;
	second = act;
}

const char *smalti_signals_caught(void)
{
	return caught == 0 ? NULL : caught == SIGINT ? "SIGINT" : "SIGTERM";
}
