/* SPDX-License-Identifier: Apache-2.0 */
#include "w8a8_case.h"

static const struct test tests[] = {{"sums are exact", sums_are_exact}};

TEST_MAIN("products of bytes", tests)
