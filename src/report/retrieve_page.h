/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* What queries have found as an HTML page that stands alone: a heading for each query, and for each item its
 * score, its key and, if `images` is a directory where the key names an image, a small copy of that. The page
 * appears complete or not at all. */
struct smalti_retrieve_page;

/* Opens a page. `index` is its name, for the heading; `images` NULL: no images. Both are the caller's and
 * outlive the page. */
struct smalti_retrieve_page *smalti_retrieve_page_open(const char *path, const char *index,
						       const char *images, struct smalti_error *error);
void smalti_retrieve_page_query(struct smalti_retrieve_page *page, const char *name);
/* Adds an item of the last query. `denoising` is the score by which it was ranked anew; NaN: there is none.
 * An image that cannot be read is left out, and the page says why. */
void smalti_retrieve_page_match(struct smalti_retrieve_page *page, const char *key, double score,
				double denoising);
/* Completes the page and frees it. */
int smalti_retrieve_page_commit(struct smalti_retrieve_page *page, struct smalti_error *error);
void smalti_retrieve_page_abort(struct smalti_retrieve_page *page); /* NULL is fine */
