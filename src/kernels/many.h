/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The most tiles of one kind that a task takes. Device kernels include it, too. */
enum { SMALTI_MANY = 16 };
