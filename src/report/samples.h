/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Writes the images of a run's directory, RUN/samples/step-N/K.png, as "samples":[…], a member of a page's
 * data. They are small, and data: URLs. Of many steps some are taken, the first and the last ones among them.
 * What cannot be read is left out. */
void smalti_report_samples(FILE *page, const char *run);
