/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* Who a process is, for others to know whether it is still there. */
struct smalti_process {
	char host[128];
	char machine[160]; /* this boot of this machine and the name space of its process numbers */
	int64_t pid;
	int64_t start; /* as the system counts it; 0: unknown. Numbers are used again, starts are not */
};

enum { SMALTI_HOLDER = 256, SMALTI_PROCESS_TAG = 48 };

/* For a person: "HOST, process N". */
void smalti_process_name(const struct smalti_process *process, char name[SMALTI_HOLDER]);
void smalti_process_self(struct smalti_process *self);
/* Bytes of memory that this process holds now; 0: not known. */
int64_t smalti_process_resident(void);
/* Whether it is known to have ended: it was of this machine, and there is none of that number and start. */
bool smalti_process_is_gone(const struct smalti_process *process, const struct smalti_process *self);

/* The process as part of a file's name: MACHINE-PID-START, in a fixed number of hexadecimal digits. */
void smalti_process_tag(const struct smalti_process *process, char tag[SMALTI_PROCESS_TAG]);
/* What follows the tag that the text begins with; NULL: there is none. Only of a process of this machine is
 * known whether it has ended. */
const char *smalti_process_read_tag(const char *text, const struct smalti_process *self, bool *here,
				    bool *gone);

int smalti_process_print(const struct smalti_process *process, cJSON *object, struct smalti_error *error);
int smalti_process_read(struct smalti_process *process, const cJSON *object, struct smalti_error *error);
