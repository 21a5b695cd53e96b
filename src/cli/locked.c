/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/locked.h"

static const double LONG = 3; /* seconds: a shard is committed in less */

void smalti_locked_say(struct smalti_locked *locked, struct smalti_progress *progress, const char *holder,
		       double seconds)
{
	if (locked->said || seconds < LONG)
		return;
	locked->said = true;
	smalti_progress_print(progress,
			      "%s: waiting for %s, whose lock is held by %s; if that process is stopped, "
			      "let it go on or end it",
			      locked->command->name, locked->directory, holder);
}
