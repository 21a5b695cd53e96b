/* SPDX-License-Identifier: Apache-2.0 */
/* All that a device compiles, in this order. The build makes one text of it. */
/* clang-format off */
#include "base/dtype_enum.h"
#include "kernels/device/dialect.h"
#ifndef SMALTI_OPENCL
#include "kernels/device/warp.h"
#endif
#include "kernels/device/sums.h"
#include "kernels/device/eights.h"
#include "kernels/many.h"
#include "kernels/epilogue.h"
#include "kernels/match.h"
#include "kernels/moments.h"
#include "kernels/device/arguments.h"
#include "kernels/device/parts.h"
#include "samplers/element.h"

#include "kernels/device/attention.cl"
#ifndef SMALTI_OPENCL
#include "kernels/device/attention_tensor.cl"
#endif
#include "kernels/device/conditioning.cl"
#include "kernels/device/conv.cl"
#include "kernels/device/elementwise.cl"
#include "kernels/device/layout.cl"
#include "kernels/device/linear.cl"
#include "kernels/device/norms.cl"
#include "kernels/device/backward.cl"
#include "kernels/device/retrieve.cl"
#include "kernels/device/sampler.cl"
#include "kernels/device/softmax.cl"
#include "kernels/device/text.cl"
#include "kernels/device/update.cl"
