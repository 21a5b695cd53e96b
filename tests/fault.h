/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sets what tests/fault.c does from now on: "KIND:N". -1: there is no such kind, and nothing is armed. */
__attribute__((visibility("default"))) int test_fault_arm(const char *text);
/* Returns how many calls of that kind there have been since. */
__attribute__((visibility("default"))) long test_fault_seen(void);
