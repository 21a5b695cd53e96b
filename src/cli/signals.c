/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t caught;
static void (*volatile second)(void *user);
static void *volatile second_user;

static void handle(int number)
{
	void (*act)(void *user) = second;
	if (caught && act)
		act(second_user);
	caught = number;
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

static void mask(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(how, &set, NULL);
}

void smalti_signals_hold(void)
{
	mask(SIG_BLOCK);
}

void smalti_signals_release(void)
{
	mask(SIG_UNBLOCK);
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
