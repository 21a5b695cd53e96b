/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SANITIZED: 1 with AddressSanitizer, which takes more memory and time, else 0. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif
