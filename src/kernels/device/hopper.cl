/* SPDX-License-Identifier: Apache-2.0 */
/* All that is compiled for compute capability 9.0 alone, in this order. */
/* clang-format off */
#include "base/dtype_enum.h"
#include "kernels/device/dialect.h"
#include "kernels/device/warp.h"
#include "kernels/device/hopper_parts.h"
#include "kernels/device/hopper.h"

#include "kernels/device/attention_hopper.cl"
