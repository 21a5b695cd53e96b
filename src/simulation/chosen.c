/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/chosen.h"

struct smalti_chosen smalti_chosen;
