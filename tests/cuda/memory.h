/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of devices that do not exist. Its addresses have a device's mark in their upper bits, so that a
 * host that uses one gets SIGSEGV at that line; fresh memory is NaN. */
#pragma once

#include <cstddef>

/* Prints what a program did wrong to stderr; aborts. */
[[noreturn]] void standin_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

int standin_device_count(void);
size_t standin_memory_total(void); /* of each device */
size_t standin_memory_free(int device);

/* Returns NULL if that much is not free. */
void *standin_allocate(int device, size_t bytes);
/* Releases an allocation; aborts unless one of any device begins there. */
void standin_release(void *memory);
/* Returns the device of an address; -1: none. */
int standin_device_of(const void *address);
/* Returns where `bytes` bytes of that device really are; aborts, naming `user`, unless one allocation has
 * them all. */
char *standin_at(const void *address, int device, size_t bytes, const char *user);

/* Tells whether this call of `what` (malloc, launch, product, graph, cudnn, busy: a device's opening) must
 * fail: SMALTI_STANDIN_FAIL=what:number, from 1. */
bool standin_fails(const char *what);

/* Tells whether this call of `what` finds the device lost. It is lost from the call on that SMALTI_LOSE
 * names, as what:number or any:number: step (of a stream), launch, product, graph, copy, record, query,
 * malloc, free or wait. */
bool standin_lost(const char *what, int device);
