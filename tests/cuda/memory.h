/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of devices that are not there. Its addresses have a device's mark in their upper bits, so that a
 * host that uses one gets SIGSEGV at that line; fresh memory is NaN. */
#pragma once

#include <cstddef>

/* What a program did wrong, to stderr; aborts. */
[[noreturn]] void standin_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

int standin_device_count(void);
size_t standin_memory_total(void); /* of each device */
size_t standin_memory_free(int device);

/* NULL: that much is not free. */
void *standin_allocate(int device, size_t bytes);
/* Aborts unless it is where an allocation of any device begins. */
void standin_release(void *memory);
/* Of an address of a device; -1: another's. */
int standin_device_of(const void *address);
/* Where `bytes` bytes of that device really are; aborts, for `user`, unless one allocation has them all. */
char *standin_at(const void *address, int device, size_t bytes, const char *user);

/* Whether this call of `what` (malloc, launch, product, graph, cudnn) is to fail:
 * SMALTI_STANDIN_FAIL=what:number, the first being 1. */
bool standin_fails(const char *what);

/* Whether this call of `what` finds that the device is lost, which it is from the call on that SMALTI_LOSE
 * says, as what:number or any:number: step (of a stream), launch, product, graph, copy, record, query,
 * malloc, free or wait. */
bool standin_lost(const char *what, int device);
