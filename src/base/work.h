/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an operation does most of its time. Machines have a rate for each kind of arithmetic; the kinds from
 * SMALTI_WORKS on are limited by the bytes that they move. */
enum smalti_work {
	SMALTI_PRODUCTS,
	SMALTI_CONVOLUTIONS,
	SMALTI_ATTENTION,
	SMALTI_WORKS,
	SMALTI_VALUES =
	    SMALTI_WORKS, /* computes a few operations for each value, rounded by the order of the device */
	SMALTI_COPIES     /* moves values, or picks them: the same bits on all devices */
};
