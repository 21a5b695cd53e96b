/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Writes "samples":[…], a member of a page's data: the images RUN/samples/step-N/K.png, small and as data; of
 * some steps if there are many, the first and the last ones among them. What cannot be read is left out. */
void smalti_report_samples(FILE *page, const char *run);
