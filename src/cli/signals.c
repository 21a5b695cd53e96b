/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signals.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/numbers.h"
#include "ranks/ranks.h"
#include "rt/session.h"

#include <fcntl.h>
#include <signal.h>

/* Seconds in which dropped work must end by itself. */
enum { GRACE = 10 };

static volatile sig_atomic_t caught, counted;
static volatile unsigned patience; /* seconds that finishing may take; 0: no limit */
static double counted_at;          /* by the handler alone */
static struct {
	void (*volatile act)(void *user);
	void *volatile user;
} first, second;

static volatile int reading = -1, nothing = -1;
static volatile bool on_terminal;

static void say(const char *words)
{
	if (on_terminal && write(STDERR_FILENO, "\n", 1) < 0) /* behind ^C or a bar */
		return;
	if (write(STDERR_FILENO, words, strlen(words)) < 0)
		on_terminal = false; /* nobody reads */
}

static void end_at_once(int number)
{
	(void)number;
	say("smalti: ended without waiting for active items\n");
	_exit(SMALTI_EXIT_FAILED);
}

/* Tells whether the signal repeats one: timeout, SLURM and terminals may signal the program and its group at
 * once. */
static bool is_echo(void)
{
	const double now = smalti_now();
	if (counted && now - counted_at < 1)
		return true;
	counted_at = now;
	return false;
}

static void finish(int number)
{
	if (reading >= 0)
		dup2(nothing, reading); /* a read that has not begun yet must not wait, either */
	if (second.act && smalti_ranks_own() == 0)
		say("smalti: finishing active items; a second signal (Ctrl-C) drops them\n");
	caught = number;
	if (first.act)
		first.act(first.user);
	alarm(patience);
}

static void drop(void)
{
	alarm(GRACE);
	if (!second.act)
		return;
	second.act(second.user);
	if (smalti_ranks_own() == 0)
		say("smalti: dropping active items\n");
}

/* Drops the work; if it was dropped before, ends the program. */
static void lose_patience(int number)
{
	const int cause = errno;
	if (counted == 1) {
		counted++;
		drop();
	} else {
		end_at_once(number);
	}
	errno = cause;
}

static void handle(int number)
{
	const int cause = errno;
	if (!is_echo()) {
		counted++;
		if (counted == 1)
			finish(number);
		else if (counted == 2)
			drop();
		else
			end_at_once(number);
	}
	errno = cause;
}

int smalti_signals_end_reads(int file)
{
	if (nothing < 0)
		nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	reading = nothing < 0 ? -1 : file;
	return nothing < 0 ? -1 : 0;
}

static sigset_t both_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	return set;
}

void smalti_signals_catch(void)
{
	on_terminal = isatty(STDERR_FILENO);
	/* no SA_RESTART: reads are interrupted */
	const struct sigaction action = {.sa_handler = handle, .sa_mask = both_signals()};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	const struct sigaction alarmed = {.sa_handler = lose_patience, .sa_mask = both_signals()};
	sigaction(SIGALRM, &alarmed, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

void smalti_signals_first(void (*act)(void *user), void *user)
{
	first.act = NULL;
	first.user = user;
	first.act = act;
}

void smalti_signals_finish_within(int seconds)
{
	patience = (unsigned)seconds;
}

void smalti_signals_second(void (*act)(void *user), void *user)
{
	second.act = NULL;
	second.user = user;
	second.act = act;
}

const char *smalti_signals_caught(void)
{
	return caught == 0 ? NULL : caught == SIGINT ? "SIGINT" : "SIGTERM";
}

bool smalti_signals_dropped(void)
{
	return counted > 1;
}

static void note_oversubscription(const struct smalti_session *session)
{
	const int places = smalti_session_processors(session);
	if (session->workers > places && smalti_ranks_own() == 0)
		fprintf(stderr, "smalti: %d workers share %d processor%s, which is slower than one on each\n",
			session->workers, places, smalti_plural(places));
}

void smalti_signals_blame(struct smalti_error *error)
{
	if (!smalti_signals_caught())
		return;
	*error = (struct smalti_error)SMALTI_NO_ERROR;
	smalti_fail(error, SMALTI_ECANCELLED, "stopped by %s", smalti_signals_caught());
}

struct smalti_session *smalti_held_session(const struct smalti_session_options *options,
					   struct smalti_error *error)
{
	const sigset_t set = both_signals();
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	struct smalti_session *session = smalti_session_open(options, error);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	if (session)
		note_oversubscription(session);
	return session;
}
