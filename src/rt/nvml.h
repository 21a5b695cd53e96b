/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The share of the time in which kernels ran on the GPU at this address of the PCI bus, since so many
 * microseconds after 1970, but at most for as long as the driver keeps samples (some 20 s): by NVIDIA's
 * management library, which comes with the driver. NAN where there is none, or it does not know. */
double smalti_nvml_utilisation(const char *bus_id, uint64_t since);
