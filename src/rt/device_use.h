/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "rt/device.h"
#include "rt/lost.h"

/* What a device did since its session was opened, or in a part of that time, and what moved to it and from
 * it meanwhile. The times of transfers are known with a StarPU that tells when they begin and end
 * (scripts/lib/starpu.patch), else NAN. */
struct smalti_device_use {
	char name[64]; /* what StarPU calls its worker */
	int64_t worker, node;
	double seconds;     /* that all this is of */
	double busy;        /* share of them */
	double utilisation; /* the same by the driver, of all programs, at most of the last 20 s; NAN: not
			       known */
	int64_t tasks, repeated; /* that it ran, and those of them whose commands it repeated as a graph */
	double flops;            /* of its tasks */
	double peak;             /* operations a second of large products; NAN: not measured */
	int64_t bytes_to, transfers_to, bytes_from, transfers_from;
	double seconds_to, seconds_from;  /* while any transfer was under way */
	double exposed, hidden;           /* of seconds_to: while it had nothing to compute, and the rest */
	int64_t used_memory, peak_memory; /* at the last task's end, and the most, workspace included */
	int64_t memory;                   /* what there is */
};

/* Its numbers as a table, for who writes all of them. */
struct smalti_device_use_field {
	const char *key;
	size_t offset;
	bool real;  /* double, else int64_t */
	bool grows; /* with the time that passes */
};
enum { SMALTI_DEVICE_USE_FIELDS = 20 };
extern const struct smalti_device_use_field smalti_device_use_fields[SMALTI_DEVICE_USE_FIELDS];
double smalti_device_use_value(const struct smalti_device_use *use,
			       const struct smalti_device_use_field *field);

struct smalti_session;

/* Of each device since the session was opened, by their workers' numbers; returns how many. While StarPU
 * runs, one thread at a time. */
int smalti_devices_use(struct smalti_session *session, struct smalti_device_use uses[SMALTI_MAX_NODES]);
/* The same, with the utilisation since a time (smalti_wall_clock()), for who looks again and again. */
int smalti_devices_use_lately(struct smalti_session *session, double since,
			      struct smalti_device_use uses[SMALTI_MAX_NODES]);
/* Leaves in `use` what has been since `before`, but for memory and utilisation. */
void smalti_device_use_since(struct smalti_device_use *use, const struct smalti_device_use *before);
/* An array of objects: each a name and what is known of the fields. */
cJSON *smalti_devices_use_json(const struct smalti_device_use *uses, int count);

/* Tasks that devices could run, but for their size: CPUs ran them. */
struct smalti_too_large {
	int64_t tasks;
	int64_t bytes; /* of the largest */
	char name[64]; /* its */
};
struct smalti_too_large smalti_devices_too_large(const struct smalti_session *session);

/* What is measured, for sessions. */
struct smalti_meters;

/* Follows the tasks of a session with devices: before its first tile, and when StarPU runs no more. */
struct smalti_meters *smalti_meters_open(struct smalti_session *session, struct smalti_error *error);
void smalti_meters_close(struct smalti_meters *meters); /* NULL is allowed */
/* A task was inserted that has no room on any device. */
void smalti_meters_too_large(struct smalti_meters *meters, const char *name, int64_t bytes);
/* By a device's worker: a task was handed over. */
void smalti_meters_begins(struct smalti_meters *meters, unsigned memory_node);
