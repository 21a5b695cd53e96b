/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/regret.h"

/* A page with charts of schedules, from src/report/page.html.in. */
struct smalti_schedule_page;

/* Opens a page. machine NULL: this machine; model NULL: the embedded model. */
struct smalti_schedule_page *smalti_schedule_page_open(const char *path, const char *machine,
						       const char *model, struct smalti_error *error);
/* Adds a schedule, and its regret, unless that is NULL. */
int smalti_schedule_page_add(struct smalti_schedule_page *page, const char *name,
			     const struct smalti_task_schedule *schedule, const struct smalti_regret *regret,
			     struct smalti_error *error);
/* Closes the page; the file appears if `status` is 0. Returns it, or -1. NULL is allowed. */
int smalti_schedule_page_close(struct smalti_schedule_page *page, int status, struct smalti_error *error);
