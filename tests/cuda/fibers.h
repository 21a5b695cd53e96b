/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of one work group, taking turns on the calling thread. */
#pragma once

enum { STANDIN_MOST_THREADS = 1024 };

/* Runs body(argument) in `threads` fibers, one after another up to its next barrier, in one order and the
 * next time in the opposite one. One call at a time. Aborts if some end where others wait. */
void standin_fibers(unsigned threads, void (*body)(void *argument), void *argument);

/* Returns the number of the running fiber, from 0. */
unsigned standin_fiber(void);

/* Waits until all fibers have come here. */
void standin_barrier(void);

/* Waits until ready(argument), which is asked whenever the others have had their turn. Aborts if no fiber can
 * go on. */
void standin_wait_until(bool (*ready)(void *argument), void *argument);

/* Waits until no other fiber can go on. */
void standin_let_others(void);
