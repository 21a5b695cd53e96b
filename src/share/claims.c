/* SPDX-License-Identifier: Apache-2.0 */
#include "share/claims.h"
#include "base/file.h"
#include "share/range.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

enum { CLAIM_BYTES = 4096 };

/* One of our claims. The file stays open, so that its time is renewed even if another process has its name by
 * now. */
struct held {
	struct smalti_claim claim;
	int fd;
};

struct smalti_claims {
	char *directory, *claims; /* DIRECTORY, DIRECTORY/claims */
	struct smalti_process self;
	int64_t lease; /* seconds */
	struct smalti_heartbeat *heartbeat;
	smalti_claim_left *left;
	pthread_mutex_t mutex; /* for what follows, which changes with the lock held */
	struct held *held;
	int64_t count;
};

struct smalti_claims *smalti_claims_open(const char *directory, int64_t lease_seconds,
					 struct smalti_heartbeat *heartbeat, smalti_claim_left *left,
					 struct smalti_error *error)
{
	struct smalti_claims *claims = smalti_calloc(1, sizeof(*claims), error);
	if (!claims)
		return NULL;
	claims->lease = lease_seconds;
	claims->heartbeat = heartbeat;
	claims->left = left;
	pthread_mutex_init(&claims->mutex, NULL);
	smalti_process_self(&claims->self);
	claims->directory = smalti_format(error, "%s", directory);
	claims->claims = smalti_format(error, "%s/claims", directory);
	if (claims->directory && claims->claims)
		return claims;
	smalti_claims_close(claims);
	return NULL;
}

void smalti_claims_close(struct smalti_claims *claims)
{
	if (!claims)
		return;
	for (int64_t i = 0; i < claims->count; i++) {
		smalti_heartbeat_remove(claims->heartbeat, claims->held[i].fd);
		close(claims->held[i].fd);
	}
	pthread_mutex_destroy(&claims->mutex);
	free(claims->held);
	free(claims->claims);
	free(claims->directory);
	free(claims);
}

static char *path_of(const struct smalti_claims *claims, int64_t first, int64_t end,
		     struct smalti_error *error)
{
	char name[SMALTI_RANGE_NAME];
	smalti_range_name(first, end, name);
	return smalti_format(error, "%s/%s", claims->claims, name);
}

static struct held *find(const struct smalti_claims *claims, int64_t first, int64_t end)
{
	for (int64_t i = 0; i < claims->count; i++)
		if (claims->held[i].claim.first == first && claims->held[i].claim.end == end)
			return &claims->held[i];
	return NULL;
}

bool smalti_claims_find(struct smalti_claims *claims, int64_t first, int64_t end, struct smalti_claim *claim)
{
	HOLD_MUTEX(&claims->mutex);
	const struct held *held = find(claims, first, end);
	if (held)
		*claim = held->claim;
	return held;
}

/* What a claim's file says. A file that cannot be read was cut short by a loss of power: it runs out. */
struct record {
	struct smalti_process process;
	int64_t lease;
	const char *token;
};

static int read_record(const cJSON *object, struct record *record, struct smalti_error *error)
{
	if (smalti_process_read(&record->process, object, error) ||
	    smalti_json_int(object, "lease", SMALTI_JSON_REQUIRED, 1, SMALTI_LEASE_MAX, &record->lease,
			    error) ||
	    smalti_json_string(object, "token", SMALTI_JSON_REQUIRED, &record->token, error))
		return -1;
	return strlen(record->token) == SMALTI_TOKEN
		   ? 0
		   : smalti_fail(error, SMALTI_EFORMAT, "its token is none");
}

/* Tells whether the claim holds; if not, it should be removed. */
static bool judge(const struct smalti_claims *claims, const char *path, int64_t now, const cJSON *object,
		  struct smalti_claim *claim)
{
	struct record record = {.lease = claims->lease ? claims->lease : SMALTI_LEASE};
	struct stat info;
	const bool readable = object && read_record(object, &record, NULL) == 0;
	if (readable) {
		memcpy(claim->token, record.token, SMALTI_TOKEN);
		smalti_process_name(&record.process, claim->holder);
		const struct held *held = find(claims, claim->first, claim->end);
		claim->mine = held && strcmp(held->claim.token, claim->token) == 0;
		if (claim->mine)
			return true;
		if (smalti_process_is_gone(&record.process, &claims->self))
			return false;
	} else {
		snprintf(claim->holder, sizeof(claim->holder), "an unknown process");
	}
	if (stat(path, &info))
		return false;
	const int64_t age = now - ((int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec);
	const int64_t lease = record.lease * 1000000000;
	return age <= lease && age >= -lease; /* a clock that was set back must not make it last for ever */
}

/* Returns 1 if it holds and is another's; removes what has run out. */
static int examine(struct smalti_claims *claims, int64_t now, struct smalti_claim *claim,
		   struct smalti_error *error)
{
	SCOPED(free) char *path = path_of(claims, claim->first, claim->end, error);
	if (!path)
		return -1;
	SCOPED(cJSON_Delete) cJSON *object = smalti_json_read(path, CLAIM_BYTES, NULL);
	const bool holds = judge(claims, path, now, object, claim);
	int status = holds && !claim->mine;
	if (!holds && claims->lease && unlink(path) && errno != ENOENT)
		status = smalti_fail_errno(error, "%s: has run out, but cannot be removed", path);
	if (!holds && status == 0 && claims->lease && claims->left && claim->token[0])
		claims->left(claims->directory, claim);
	return status;
}

static int add_to_list(struct smalti_claim **list, int64_t *count, const struct smalti_claim *claim,
		       struct smalti_error *error)
{
	if (smalti_grow(list, *count, sizeof(**list), error) < 0)
		return -1;
	(*list)[(*count)++] = *claim;
	return 0;
}

/* Adds our own claims. What others took over while this process slept is still worked on here until it is
 * given back, and must not be claimed twice. */
static int add_held(const struct smalti_claims *claims, struct smalti_claim **list, int64_t *count,
		    struct smalti_error *error)
{
	int status = 0;
	for (int64_t i = 0; i < claims->count && status == 0; i++)
		status = add_to_list(list, count, &claims->held[i].claim, error);
	return status;
}

/* Lists the files' claims; with `now` NULL all hold. */
static int list_files(struct smalti_claims *claims, const int64_t *now, struct smalti_claim **list,
		      int64_t *count, struct smalti_error *error)
{
	SCOPED(closedir) DIR *directory = opendir(claims->claims);
	if (!directory && claims->lease == 0 && errno == ENOENT)
		return 0;
	if (!directory)
		return smalti_fail_errno(error, "%s: cannot be read", claims->claims);
	int status = 0;
	for (const struct dirent *entry; status >= 0 && (entry = readdir(directory));) {
		struct smalti_claim claim = {0};
		const char *rest = smalti_range_parse(entry->d_name, &claim.first, &claim.end);
		if (!rest || *rest)
			continue;
		status = now ? examine(claims, *now, &claim, error) : 1;
		if (status > 0)
			status = add_to_list(list, count, &claim, error);
	}
	return status < 0 ? -1 : 0;
}

int smalti_claims_list(struct smalti_claims *claims, const int64_t *now, struct smalti_claim **list,
		       int64_t *count, struct smalti_error *error)
{
	*list = NULL;
	*count = 0;
	if (list_files(claims, now, list, count, error) == 0 && add_held(claims, list, count, error) == 0)
		return 0;
	free(*list);
	*list = NULL;
	return -1;
}

static int make_token(char token[SMALTI_TOKEN + 1], struct smalti_error *error)
{
	uint64_t random;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return smalti_fail_errno(error, "no random number can be had");
	snprintf(token, SMALTI_TOKEN + 1, "%016" PRIx64, random);
	return 0;
}

static int write_claim(const struct smalti_claims *claims, const char *path, const char *token,
		       struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	int status = smalti_process_print(&claims->self, object, error);
	if (status == 0 && !(cJSON_AddNumberToObject(object, "lease", (double)claims->lease) &&
			     cJSON_AddStringToObject(object, "token", token)))
		status = smalti_fail(error, SMALTI_ENOMEM, "no memory for a claim");
	if (status == 0)
		status = smalti_json_place(path, object, error);
	return status;
}

/* Adds it to the list and the heartbeat. */
static int hold(struct smalti_claims *claims, const struct held *held, struct smalti_error *error)
{
	HOLD_MUTEX(&claims->mutex);
	if (smalti_grow(&claims->held, claims->count, sizeof(*claims->held), error) < 0 ||
	    smalti_heartbeat_add(claims->heartbeat, held->fd, error) < 0)
		return -1;
	claims->held[claims->count++] = *held;
	return 0;
}

int smalti_claims_add(struct smalti_claims *claims, int64_t first, int64_t end, int replaces,
		      struct smalti_error *error)
{
	struct held held = {.claim = {first, end, replaces, .mine = true, .holder = "this process"}};
	SCOPED(free) char *path = path_of(claims, first, end, error);
	if (!path || make_token(held.claim.token, error) ||
	    write_claim(claims, path, held.claim.token, error))
		return -1;
	held.fd = open(path, O_WRONLY | O_CLOEXEC);
	const int status =
	    held.fd < 0 ? smalti_fail_errno(error, "%s: cannot be opened", path) : hold(claims, &held, error);
	if (status) {
		unlink(path);
		if (held.fd >= 0)
			close(held.fd);
	}
	return status;
}

int smalti_claims_holds(struct smalti_claims *claims, int64_t first, int64_t end, struct smalti_error *error)
{
	const struct held *held = find(claims, first, end);
	if (!held)
		return 0;
	SCOPED(free) char *path = path_of(claims, first, end, error);
	if (!path)
		return -1;
	struct smalti_error cause = SMALTI_NO_ERROR;
	SCOPED(cJSON_Delete) cJSON *object = NULL;
	int status = smalti_find_file(path, &cause);
	if (status > 0) {
		object = smalti_json_read(path, CLAIM_BYTES, &cause);
		struct record record;
		status = object && read_record(object, &record, &cause) == 0 &&
			 strcmp(record.token, held->claim.token) == 0;
	}
	if (cause.code != SMALTI_OK)
		status = smalti_pass(error, &cause);
	return status;
}

void smalti_claims_remove(struct smalti_claims *claims, int64_t first, int64_t end)
{
	struct held *held = find(claims, first, end);
	if (!held)
		return;
	SCOPED(free) char *path = path_of(claims, first, end, NULL);
	if (path && smalti_claims_holds(claims, first, end, NULL) == 1)
		unlink(path); /* if that fails, it runs out */
	smalti_heartbeat_remove(claims->heartbeat, held->fd);
	close(held->fd);
	HOLD_MUTEX(&claims->mutex);
	*held = claims->held[--claims->count];
}

bool smalti_claims_any(const struct smalti_claims *claims)
{
	return claims->count > 0;
}

void smalti_claims_remove_all(struct smalti_claims *claims)
{
	while (claims->count)
		smalti_claims_remove(claims, claims->held[0].claim.first, claims->held[0].claim.end);
}
