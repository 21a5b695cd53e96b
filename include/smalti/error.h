/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/version.h>

/** @file
 * The one error contract: a function that can fail takes a `struct smalti_error *` last, returns -1
 * (or NULL) and leaves there a code and one line for a person: which file, which key, what was
 * expected, what was found, what to do. On success the error is left untouched. One structure may be used for
 * many calls: it holds the last failure. Only smalti_session_close() keeps an earlier one, which is the
 * cause. NULL is allowed where nobody wants to know. The library never exits, aborts or prints.
 *
 * Files that are read are mapped into memory: models, features, indexes, latents. When one is cut short or
 * written to meanwhile, or the disk fails, whatever reads it fails with an error that names it, and so does
 * everything that needs it later, until it is opened anew; a file that is replaced by renaming stays what it
 * was. For that the first file that is opened installs a handler of SIGBUS, once. It passes on to the handler
 * that was there before, or to the system, what is not about such a file. A program that has a handler of its
 * own installs it before, or has it pass on likewise.
 *
 * Threads: each has an error of its own. What a header does not say to be safe is called by one thread at a
 * time per object; different objects of one session may be used by different threads.
 */

SMALTI_BEGIN_DECLS

enum smalti_code {
	SMALTI_OK = 0,
	SMALTI_EINVAL,       /**< an argument or option is out of range */
	SMALTI_EFORMAT,      /**< a file is not what its format demands */
	SMALTI_EIO,          /**< the operating system refused to read or write */
	SMALTI_ENOMEM,       /**< memory could not be had, or the limit does not allow it */
	SMALTI_ENODEV,       /**< no worker can run a task */
	SMALTI_ECORRUPT,     /**< a checksum or a count does not match */
	SMALTI_EUNSUPPORTED, /**< understood, but not something this program does */
	SMALTI_ECANCELLED,   /**< stopped on request */
	SMALTI_ENOENT        /**< a file or directory that was named is not there */
};

#define SMALTI_ERROR_LENGTH 1024

/** Owned by the caller; initialise with `SMALTI_NO_ERROR`. */
struct smalti_error {
	enum smalti_code code;
	char message[SMALTI_ERROR_LENGTH]; /**< one line, no newline, always terminated */
};

#define SMALTI_NO_ERROR                                                                                      \
	{                                                                                                    \
		SMALTI_OK, ""                                                                                \
	}

SMALTI_END_DECLS
