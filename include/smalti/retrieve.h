/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/features.h>
#include <smalti/model.h>

/** @file
 * Retrieval over the features that `smalti extract` has written: an index has one vector of length 1 for each
 * item, and a search finds the items whose vectors have the largest products (cosines) with those of queries.
 * It is exact: every vector is looked at, and of equal scores the item that comes first counts as the better.
 *
 * - of captions: the mean of T5's hidden states over the caption's tokens, without padding; normalised.
 *   Captions are compared with captions.
 * - of images: the mean latents, averaged on a grid of 8 × 8 (as torch's adaptive_avg_pool2d), whitened with
 *   the mean and the covariance of the index's items; normalised. Images are compared with images.
 *
 * T5's states and the VAE's latents share no space. smalti_projections_train() learns a linear map of each
 * into one, from pairs: captions and images of indexes that are made with them are compared with each other.
 *
 * Threads: an open index is not changed, and may be used by any number of them.
 */

SMALTI_BEGIN_DECLS

enum smalti_index_kind { SMALTI_INDEX_CAPTIONS, SMALTI_INDEX_IMAGES };

/** Progress of making an index. */
struct smalti_index_progress {
	int64_t rows;    /**< of the features that were read */
	int64_t total;   /**< of them */
	int64_t items;   /**< that have a vector */
	int64_t without; /**< rows that lack what the index is of, or whose values are no finite numbers or
			    all 0 */
	int64_t damaged; /**< rows that could not be read */
};

struct smalti_index_options {
	const char *features; /**< directory of features */
	const char *output;   /**< directory, which must not exist */
	enum smalti_index_kind kind;
	const char *caption;     /**< of captions: which key; NULL: the only one, or "prompt" */
	const char *projections; /**< directory of projections that vectors are made with; NULL: without */
	/** Called after each row, if not NULL; false ends it with SMALTI_ECANCELLED. */
	bool (*on_progress)(void *user, const struct smalti_index_progress *progress);
	/** Called for each damaged row, if not NULL. */
	void (*damaged)(void *user, const struct smalti_error *error);
	void *user;
};

/** Makes an index; the directory appears when it is complete. -1 with SMALTI_EINVAL (there is something of
 * that name, or the features have no such captions or images), SMALTI_EIO. */
int smalti_index_make(const struct smalti_index_options *options, struct smalti_index_progress *progress,
		      struct smalti_error *error);

struct smalti_index;

struct smalti_index_info {
	enum smalti_index_kind kind;
	const char *features; /**< the directory that it was made of, as it was named then */
	const char *caption;  /**< NULL: it is of images */
	bool projected;       /**< it was made with projections: texts and images can be asked for */
	int64_t items, dim;
};

/** Maps an index; all of it is checked by its checksums. NULL with SMALTI_EIO, SMALTI_EFORMAT,
 * SMALTI_ECORRUPT. */
struct smalti_index *smalti_index_open(const char *directory, struct smalti_error *error);
void smalti_index_close(struct smalti_index *index); /**< NULL is allowed */
void smalti_index_info(const struct smalti_index *index, struct smalti_index_info *info);

/** An item of the index; strings are the index's. */
struct smalti_index_item {
	int64_t index; /**< its place in the features' data set */
	char *key;     /**< what the data set calls it; free() it */
};

/** Item 0 … items − 1 of the index: 0, or -1. */
int smalti_index_item(const struct smalti_index *index, int64_t number, struct smalti_index_item *item,
		      struct smalti_error *error);
/** The number of the item with this key; -1 with SMALTI_EINVAL if there is none. */
int64_t smalti_index_find(const struct smalti_index *index, const char *key, struct smalti_error *error);

/** Queries f32 [count, dim]. */

/** The vector of an item of the index. */
void smalti_index_vector(const struct smalti_index *index, int64_t number, float *query);
/** 0 if vectors of the items of `other` are queries of this index: it is the same, or both were made with the
 * same projections; else -1 with SMALTI_EINVAL. */
int smalti_index_fits(const struct smalti_index *index, const struct smalti_index *other,
		      struct smalti_error *error);
/** Of texts, by the text encoder of `model`, which has to be that of the index's captions, or of its
 * projections. */
int smalti_index_encode(const struct smalti_index *index, struct smalti_session *session,
			const struct smalti_model_options *model, const char *const *texts, int64_t count,
			float *queries, struct smalti_error *error);

/** Checks that captions or images (`by`; without projections what the index is of) of features are of the
 * model that the index's are of, and finds their caption (NULL: the index's): its place in a row's texts, or
 * 0 for images; else -1 with SMALTI_EINVAL. */
int smalti_index_accepts(const struct smalti_index *index, const struct smalti_features *features,
			 enum smalti_index_kind by, const char *caption, struct smalti_error *error);
/** Of a row of such features: 1, 0 if it has none, or -1 with SMALTI_ENOMEM. */
int smalti_index_row_vector(const struct smalti_index *index, const struct smalti_features *features,
			    enum smalti_index_kind by, int caption, const struct smalti_features_row *row,
			    float *query, struct smalti_error *error);

/** An item that was found. */
struct smalti_found {
	int64_t number; /**< of the index's item; -1: there are fewer */
	float score;    /**< the product of the vectors, from −1 to 1 */
};

/** The `top` best items for each query, the best first: `found` [count, top]. The result is the same to the
 * bit whatever the session's workers and policy. -1 with SMALTI_EINVAL, SMALTI_ENOMEM. */
int smalti_index_search(const struct smalti_index *index, struct smalti_session *session,
			const float *queries, int64_t count, int64_t top, struct smalti_found *found,
			struct smalti_error *error);

/** How the items that were found first are ordered anew: by how much less the transformer errs, when it tells
 * the noise in their latents, with the query's caption than with the empty one. The score of an item is
 * Σ wₜ·(‖ε − ε(xₜ, t, empty)‖² − ‖ε − ε(xₜ, t, caption)‖²)/n over some timesteps t, with the same noise ε for
 * all items of a shape; n are the values of its latents. The weights wₜ are 1/(timesteps). */
struct smalti_rerank_options {
	struct smalti_model_options model; /**< has to be the one that the features are of */
	const char *features; /**< directory that the index was made of; NULL: as it was named then */
	int64_t timesteps;    /**< how many, spread evenly over 1000 */
	uint64_t seed;        /**< of the noise */
	/** Called some ten times a second with the forwards that were made, of all, if not NULL; false ends
	 * it with SMALTI_ECANCELLED. */
	bool (*on_progress)(void *user, int64_t done, int64_t total);
	void *user;
};

void smalti_rerank_defaults(struct smalti_rerank_options *options);

struct smalti_reranker;

/** Opens the model and the features, which outlive nothing; the index, the session and the options' strings
 * outlive it. NULL with SMALTI_EINVAL where features, index and model are not of one text encoder and one
 * VAE; SMALTI_EUNSUPPORTED for a model that does not predict noise. */
struct smalti_reranker *smalti_reranker_open(const struct smalti_index *index, struct smalti_session *session,
					     const struct smalti_rerank_options *options,
					     struct smalti_error *error);
void smalti_reranker_close(struct smalti_reranker *reranker); /**< NULL is allowed */

/** What a query asks for: a text, or with NULL T5's hidden states of one, by the index's text encoder. */
struct smalti_rerank_query {
	const char *text;
	struct smalti_features_text states;
	enum smalti_features_type type; /**< of the states */
};

/** Orders the first `candidates` of each query's items in `found` [count, top] anew, the best first, and says
 * by which scores in `scores` [count, candidates], in their new order; −1 entries of `found` stay where they
 * are. `query` is called once for each query, in their order; what it gives is read before its next call, and
 * it returns 0, or -1 with an error. The result is the same to the bit whatever the session's CPU workers and
 * policy. -1 with SMALTI_EINVAL (the features are not those of the index), SMALTI_ECORRUPT, SMALTI_EIO,
 * SMALTI_ENOMEM. */
int smalti_rerank(struct smalti_reranker *reranker, int64_t count, int64_t top, int64_t candidates,
		  int (*query)(void *user, int64_t number, struct smalti_rerank_query *query,
			       struct smalti_error *error),
		  void *user, struct smalti_found *found, double *scores, struct smalti_error *error);

/** How often the right item was found: the shares of queries that have it among the first 1, 5 and 10, and
 * the mean of 1/place, 0 beyond the tenth. */
struct smalti_recall {
	double at[3], mrr;
};

/** Progress of training projections. */
struct smalti_projections_progress {
	int64_t rows, total;      /**< of the features that were read, of all */
	int64_t without, damaged; /**< of them those that lack something, or could not be read */
	int64_t step, steps;      /**< made, of all */
	double loss;              /**< of the last step */
};

struct smalti_projections_result {
	struct smalti_projections_progress progress;
	int64_t trained, held_out; /**< pairs */
	double temperature;        /**< what cosines are multiplied by */
	/** Of the pairs that are held out, whose captions differ; NaN: there are none. @{ */
	double held_out_loss;
	struct smalti_recall images_by_text, texts_by_image; /**< among all of them */
							     /** @} */
};

struct smalti_projections_options {
	const char *const *features; /**< directories */
	int64_t feature_count;
	const char *caption; /**< which key; NULL: the only one, or "prompt" */
	const char *output;  /**< directory, which must not have projections */
	int64_t dim;         /**< of the space */
	int64_t steps, batch, warmup;
	double rate, weight_decay;
	double held_out; /**< share of the items, chosen by their keys, that are not trained on */
	uint64_t seed;
	/** Called after each row and step, if not NULL; false ends it with SMALTI_ECANCELLED. */
	bool (*on_progress)(void *user, const struct smalti_projections_progress *progress);
	/** Called for each damaged row, if not NULL. */
	void (*damaged)(void *user, const struct smalti_error *error);
	void *user;
};

void smalti_projections_defaults(struct smalti_projections_options *options);

/** Trains projections, and writes their directory, which is none before it is complete. The bits do not
 * depend on the session's CPU workers and policy. -1 with SMALTI_EINVAL, SMALTI_EIO, SMALTI_ECORRUPT (the
 * loss is not finite). */
int smalti_projections_train(struct smalti_session *session, const struct smalti_projections_options *options,
			     struct smalti_projections_result *result, struct smalti_error *error);

SMALTI_END_DECLS
