/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many tiles of one kind a task takes at most. Included by device kernels, too. */
enum { SMALTI_MANY = 16 };
