/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_PROCESS_H
#define SMALTI_STORE_PROCESS_H

#include "base/json.h"

/* Who a process is, for others to know whether it is still there. */
struct smalti_process {
	char host[128];
	char machine[160]; /* this boot of this machine and the name space of its process numbers */
	int64_t pid;
	int64_t start; /* as the system counts it; 0: unknown. Numbers are used again, starts are not */
};

enum { SMALTI_HOLDER = 256 };

/* For a person: "HOST, process N". */
void smalti_process_name(const struct smalti_process *process, char name[SMALTI_HOLDER]);
void smalti_process_self(struct smalti_process *self);
/* Whether it is known to have ended: it was of this machine, and there is none of that number and start. */
bool smalti_process_is_gone(const struct smalti_process *process, const struct smalti_process *self);

int smalti_process_print(const struct smalti_process *process, cJSON *object, struct smalti_error *error);
int smalti_process_read(struct smalti_process *process, const cJSON *object, struct smalti_error *error);

#endif
