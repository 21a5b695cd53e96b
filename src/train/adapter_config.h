/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/trainer.h"

/* Returns peft's configuration of the adapter that a trainer trains, a JSON text for free(). */
char *smalti_adapter_config(const struct smalti_trainer *trainer, struct smalti_error *error);
