/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* The identity of a process, by which others can tell whether it still runs. */
struct smalti_process {
	char host[128];
	char machine[160]; /* this boot of this machine, and the PID namespace */
	int64_t pid;
	int64_t start; /* in the system's units; 0: unknown. PIDs are reused, starts are not */
};

enum { SMALTI_HOLDER = 256, SMALTI_PROCESS_TAG = 48 };

/* Writes a name for people: "HOST, process N". */
void smalti_process_name(const struct smalti_process *process, char name[SMALTI_HOLDER]);
void smalti_process_self(struct smalti_process *self);
/* Returns the bytes of memory that this process holds now; 0: not known. */
int64_t smalti_process_resident(void);
/* Tells whether a process is known to have ended: it was on this machine, and no process has its number and
 * start. */
bool smalti_process_is_gone(const struct smalti_process *process, const struct smalti_process *self);

/* Writes the process as part of a file's name: MACHINE-PID-START, in a fixed number of hexadecimal digits. */
void smalti_process_tag(const struct smalti_process *process, char tag[SMALTI_PROCESS_TAG]);
/* Returns what follows the tag at the beginning of the text; NULL: there is no tag. Only for a process of
 * this machine it tells whether it has ended. */
const char *smalti_process_read_tag(const char *text, const struct smalti_process *self, bool *here,
				    bool *gone);

int smalti_process_print(const struct smalti_process *process, cJSON *object, struct smalti_error *error);
int smalti_process_read(struct smalti_process *process, const cJSON *object, struct smalti_error *error);
