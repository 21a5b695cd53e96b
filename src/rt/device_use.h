/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "devices/device.h"
#include "rt/lost.h"

/* What a device did since its session was opened, or in a part of that time, and the transfers to and from
 * it. The times of transfers are NAN unless StarPU reports when they begin and end
 * (scripts/lib/starpu/transfer-callbacks.patch). */
struct smalti_device_use {
	char name[64]; /* StarPU's name of its worker */
	int64_t worker, node;
	double seconds;     /* the period of all these numbers */
	double busy;        /* share of `seconds` */
	double utilisation; /* share by the driver, of all programs, at most of the last 20 s; NAN: unknown */
	int64_t tasks, repeated; /* tasks that it ran, and how many of them it repeated as a graph */
	double flops;            /* of its tasks */
	double peak;             /* operations a second of large products; NAN: not measured */
	int64_t bytes_to, transfers_to, bytes_from, transfers_from;
	double seconds_to, seconds_from;  /* while any transfer was under way */
	double exposed, hidden;           /* of seconds_to: while it had nothing to compute, and the rest */
	int64_t used_memory, peak_memory; /* at the last task's end, and the maximum, workspace included */
	int64_t peak_tiles;               /* the maximum without workspace */
	int64_t memory;                   /* total */
};

/* The numbers as a table, for code that writes all of them. */
struct smalti_device_use_field {
	const char *key;
	size_t offset;
	bool real;  /* double, else int64_t */
	bool grows; /* grows with time */
};
enum { SMALTI_DEVICE_USE_FIELDS = 21 };
extern const struct smalti_device_use_field smalti_device_use_fields[SMALTI_DEVICE_USE_FIELDS];
double smalti_device_use_value(const struct smalti_device_use *use,
			       const struct smalti_device_use_field *field);

struct smalti_session;

/* Reads the use of each device since the session was opened, by their workers' numbers; returns how many.
 * While StarPU runs, one thread at a time. */
int smalti_devices_use(struct smalti_session *session, struct smalti_device_use uses[SMALTI_MAX_NODES]);
/* Does so with the utilisation since `since` (smalti_wall_clock()), for repeated calls. */
int smalti_devices_use_lately(struct smalti_session *session, double since,
			      struct smalti_device_use uses[SMALTI_MAX_NODES]);
/* Subtracts `before` from `use`, except for memory and utilisation. */
void smalti_device_use_since(struct smalti_device_use *use, const struct smalti_device_use *before);
/* Makes an array of objects: each has the name and the known fields. */
cJSON *smalti_devices_use_json(const struct smalti_device_use *uses, int count);

/* Tasks that devices could run but for their size: CPUs ran them. */
struct smalti_too_large {
	int64_t tasks;
	int64_t bytes; /* of the largest task */
	char name[64]; /* its name */
};
struct smalti_too_large smalti_devices_too_large(const struct smalti_session *session);

/* The meters of a session. */
struct smalti_meters;

/* Follows the tasks of a session with devices; opened before its first tile, closed after StarPU has
 * stopped. */
struct smalti_meters *smalti_meters_open(struct smalti_session *session, struct smalti_error *error);
void smalti_meters_close(struct smalti_meters *meters); /* NULL is allowed */
/* Counts a task that was inserted and has no room on any device. */
void smalti_meters_too_large(struct smalti_meters *meters, const char *name, int64_t bytes);
/* Notes that the worker has handed over a task. */
void smalti_meters_begins(struct smalti_meters *meters, unsigned memory_node);
