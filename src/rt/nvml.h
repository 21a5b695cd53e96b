/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* A GPU as NVIDIA's management library knows it, which comes with the driver. */
struct smalti_nvml;

/* Finds the GPU at this address of the PCI bus; NULL: there is no such library, or it does not know the GPU.
 */
struct smalti_nvml *smalti_nvml_open(const char *bus_id);
void smalti_nvml_close(struct smalti_nvml *nvml); /* NULL is allowed */

/* Returns the share of the time in which kernels of any program ran, since so many microseconds after 1970,
 * but at most for as long as the driver keeps samples (some 20 s); NAN: it has no sample of that time. Any
 * thread. */
double smalti_nvml_utilisation(const struct smalti_nvml *nvml, uint64_t since);
