/* SPDX-License-Identifier: Apache-2.0 */
#include "share/hold.h"
#include "base/file.h"
#include "base/process.h"
#include "share/claims.h"
#include "share/lock.h"

struct smalti_hold {
	char *file;
	struct smalti_heartbeat *heartbeat;
	struct smalti_lock *lock;
	bool taken;
	char holder[SMALTI_HOLDER]; /* another, if there is one */
};

static bool refuse_to_wait(void *user, const char *holder, double seconds)
{
	(void)seconds;
	struct smalti_hold *hold = user;
	snprintf(hold->holder, sizeof(hold->holder), "%s", holder);
	return false;
}

static int take(struct smalti_hold *hold, const char *directory, const char *makes,
		struct smalti_error *error)
{
	const struct smalti_lock_wait wait = {refuse_to_wait, hold, SMALTI_LEASE};
	struct smalti_error cause = SMALTI_NO_ERROR;
	if (smalti_make_directory(directory, error) < 0)
		return -1;
	hold->file = smalti_format(error, "%s/.lock", directory);
	hold->heartbeat = hold->file ? smalti_heartbeat_start(SMALTI_LEASE, error) : NULL;
	hold->lock = hold->heartbeat ? smalti_lock_open(directory, &wait, hold->heartbeat, error) : NULL;
	if (!hold->lock)
		return -1;
	hold->taken = smalti_lock_acquire(hold->lock, NULL, &cause) == 0;
	if (!hold->taken && hold->holder[0])
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: %s %s there: wait until that has ended, or name another directory",
				   directory, hold->holder, makes);
	return hold->taken ? 0 : smalti_pass(error, &cause);
}

struct smalti_hold *smalti_hold_open(const char *directory, const char *makes, struct smalti_error *error)
{
	struct smalti_hold *hold = smalti_calloc(1, sizeof(*hold), error);
	if (!hold || take(hold, directory, makes, error) == 0)
		return hold;
	smalti_hold_close(hold);
	return NULL;
}

void smalti_hold_clean(const char *directory)
{
	SCOPED(free) char *file = smalti_format(NULL, "%s/.lock", directory);
	if (file && access(file, F_OK) == 0)
		smalti_hold_close(smalti_hold_open(directory, "", NULL));
}

void smalti_hold_close(struct smalti_hold *hold)
{
	if (!hold)
		return;
	if (hold->taken) {
		unlink(hold->file); /* those that wait for it look whether it is still there */
		smalti_lock_release(hold->lock);
	}
	smalti_lock_close(hold->lock);
	smalti_heartbeat_stop(hold->heartbeat);
	free(hold->file);
	free(hold);
}
