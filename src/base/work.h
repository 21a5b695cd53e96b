/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kind of arithmetic that dominates an operation. Machines have a rate for each kind; the kinds from
 * SMALTI_WORKS on are limited by the bytes that they move. */
enum smalti_work {
	SMALTI_PRODUCTS,
	SMALTI_CONVOLUTIONS,
	SMALTI_ATTENTION,
	SMALTI_WORKS,
	SMALTI_VALUES = SMALTI_WORKS, /* a few operations for each value, rounded in the device's order */
	SMALTI_COPIES,                /* moves or selects values: equal bits on all devices */
	SMALTI_PICTURES               /* decodes and resizes pictures: its bytes are those of f32 pixels */
};
