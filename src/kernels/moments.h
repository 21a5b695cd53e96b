/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Statistics of one group of channels over some pixels; m2 is the sum of squared deviations. Device kernels
 * include it, too. */
struct smalti_moments {
	double count, mean, m2;
};
