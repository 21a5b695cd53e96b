/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The output function of SplitMix64 (Steele, Lea and Flood). */
static inline uint64_t smalti_mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}
