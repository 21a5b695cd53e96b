/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/work.h"

/* Writes to `output` the description of the machine that made these traces (docs/simulate.md): its workers,
 * memories and links, and the rates of its operations. `files` are separated by commas; `precision` is that
 * of their models; `work_of` returns the work of an operation. Each process of an MPI job becomes a node: its
 * devices or, if it has none, all its CPUs as one place. SMALTI_EIO, SMALTI_EFORMAT,
 * SMALTI_EUNSUPPORTED: devices of several kinds. */
int smalti_calibrate(const char *files, enum smalti_work (*work_of)(const char *op), int precision,
		     const char *output, struct smalti_error *error);
