/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CODELETS_MANY_H
#define SMALTI_CODELETS_MANY_H

/* How many tiles of one kind a task takes at most. Included by device kernels, too. */
enum { SMALTI_MANY = 16 };

#endif
