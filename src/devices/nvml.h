/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* A GPU as seen by NVIDIA's management library (NVML), which comes with the driver. */
struct smalti_nvml;

/* Finds the GPU at this PCI bus address; NULL: there is no such library, or it does not know the GPU. */
struct smalti_nvml *smalti_nvml_open(const char *bus_id);
void smalti_nvml_close(struct smalti_nvml *nvml); /* NULL is allowed */

/* Returns the share of the time in which kernels of any program ran, since `since` (microseconds after 1970),
 * but at most for as long as the driver keeps samples (about 20 s); NAN: it has no sample of that time. Any
 * thread. */
double smalti_nvml_utilisation(const struct smalti_nvml *nvml, uint64_t since);
