/* SPDX-License-Identifier: Apache-2.0 */
#include "share/member.h"
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

static int make_durably(const char *directory, struct smalti_error *error)
{
	struct stat info;
	if (stat(directory, &info) == 0)
		return smalti_make_directory(directory, error); /* which fails if it is something else */
	SCOPED(free) char *parent = smalti_directory_of(directory, error);
	return parent && smalti_make_directory(directory, error) == 0 ? smalti_sync_directory(parent, error)
								      : -1;
}

int smalti_member_open(struct smalti_member *member, const char *directory,
		       const struct smalti_lock_wait *wait, smalti_claim_left *left,
		       struct smalti_error *error)
{
	struct smalti_lock_wait rules = *wait;
	*member = (struct smalti_member){0};
	rules.lease_seconds = wait->lease_seconds ? wait->lease_seconds : SMALTI_LEASE;
	if (rules.lease_seconds < 1 || rules.lease_seconds > SMALTI_LEASE_MAX)
		return smalti_fail(error, SMALTI_EINVAL, "a lease of %lld seconds: 1 to %d are possible",
				   (long long)rules.lease_seconds, SMALTI_LEASE_MAX);
	member->directory = smalti_format(error, "%s", directory);
	if (!member->directory || make_durably(directory, error))
		return -1;
	member->heartbeat = smalti_heartbeat_start(rules.lease_seconds, error);
	if (member->heartbeat)
		member->lock = smalti_lock_open(directory, &rules, member->heartbeat, error);
	if (member->lock)
		member->claims =
		    smalti_claims_open(directory, rules.lease_seconds, member->heartbeat, left, error);
	return member->claims ? 0 : -1;
}

void smalti_member_close(struct smalti_member *member)
{
	if (member->claims && smalti_claims_any(member->claims) &&
	    smalti_lock_acquire(member->lock, NULL, NULL) == 0) {
		smalti_claims_remove_all(member->claims);
		smalti_lock_release(member->lock);
	}
	smalti_claims_close(member->claims);
	smalti_lock_close(member->lock);
	smalti_heartbeat_stop(member->heartbeat);
	free(member->directory);
	*member = (struct smalti_member){0};
}

int smalti_member_refresh(const char *directory, struct smalti_error *error)
{
	return utimensat(AT_FDCWD, directory, NULL, 0)
		   ? smalti_fail_errno(error, "%s: cannot be touched", directory)
		   : 0;
}
