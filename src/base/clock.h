/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_BASE_CLOCK_H
#define SMALTI_BASE_CLOCK_H

/* Seconds since some moment in the past, which never go back. */
double smalti_now(void);
/* Seconds since 1970, for people. */
double smalti_wall_clock(void);

#endif
