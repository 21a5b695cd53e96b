/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/json.h"
#include "cli/common_rows.h"
#include "cli/device_lines.h"
#include "cli/progress.h"
#include "cli/retrieve.h"
#include "cli/retrieve_queries.h"
#include "cli/signals.h"
#include "report/retrieve_page.h"
#include "retrieve/index.h"
#include "retrieve/recall.h"
#include "retrieve/rerank.h"

#include <ctype.h>
#include <math.h>

/* The options of `smalti retrieve query`; strings belong to argv. */
struct smalti_retrieve_query_settings {
	struct smalti_query_source source;
	struct smalti_session_options session;
	struct smalti_rerank_options rerank;
	int64_t top;
	int64_t candidates; /* that are ranked anew; 0: none */
	bool has_timesteps, has_seed;
	const char *page, *images;
	bool json, quiet;
};

#define TYPE struct smalti_retrieve_query_settings

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Queries")},
    {SMALTI_STRING(TYPE, source.prompts), "prompts", 'P', "FILE",
     "search for each line of FILE, or for each object's prompt in JSON Lines; -: standard input"},
    {SMALTI_LIST(TYPE, source.items), "like", 'l', "KEY", "search for items like this one of the index"},
    {SMALTI_STRING(TYPE, source.from), "from", 0, "INDEX",
     "with --like: the items are of this index, which was made with the same projections"},
    {SMALTI_STRING(TYPE, source.features), "features", 'f', "DIR",
     "search for each row of features in DIR, and say how often the item with the same key is found"},
    {SMALTI_STRING(TYPE, source.caption), "caption-key", 'k', "KEY",
     "with --features: search for this caption; default: the index's"},
    {SMALTI_CHOICE(TYPE, source.by), "by", 0, "WHAT",
     "with --features: search for the rows' captions, or their images; the other than what the index is of "
     "takes "
     "one with projections; default: what it is of",
     .choices = smalti_index_kinds, SMALTI_GIVEN(TYPE, source.has_by)},

    {SMALTI_GROUP("Reranking")},
    {SMALTI_INT64(TYPE, candidates), "rerank", 'r', "K",
     "order the first K items anew, by how much better the transformer tells the noise in their images' "
     "latents with the query's caption than with the empty one",
     .minimum = 1, .maximum = 1 << 20},
    {SMALTI_STRING(TYPE, rerank.features), "latents", 0, "DIR",
     "with --rerank: the features that the index was made of; default: where they were then"},
    {SMALTI_INT64(TYPE, rerank.timesteps), "timesteps", 0, "N",
     "with --rerank: look at N levels of noise; the time goes with it", .minimum = 1, .maximum = 1000,
     SMALTI_GIVEN(TYPE, has_timesteps)},
    {SMALTI_SEED(TYPE, rerank.seed), "seed", 0, "N", "with --rerank: seed of the noise; default 0",
     SMALTI_GIVEN(TYPE, has_seed)},

    {SMALTI_GROUP("Model")},
    {SMALTI_STRING(TYPE, source.model.directory), "model", 'm', "DIR",
     "directory of a pipeline in diffusers' layout, whose text encoder reads prompts, and whose transformer "
     "ranks; default: the embedded model"},
    SMALTI_TEXT_ENCODER_ROWS(TYPE, source.model),
    {SMALTI_STRING(TYPE, source.model.transformer), "transformer", 0, "DIR",
     "with --rerank: load the transformer from DIR"},
    {SMALTI_STRING(TYPE, source.model.vae), "vae-model", 0, "DIR",
     "with --rerank: the VAE in DIR is the one that the features are of", .alias = "vae"},
    SMALTI_VARIANT_ROW(TYPE, source.model.variant),
    SMALTI_PRECISION_ROW(TYPE, source.model.precision),

    {SMALTI_GROUP("Output")},
    {SMALTI_INT64(TYPE, top), "top", 'n', "N", "number of items to find for each query", .minimum = 1,
     .maximum = 1 << 20},
    {SMALTI_STRING(TYPE, page), "page", 'o', "FILE", "also write what is found as an HTML page"},
    {SMALTI_STRING(TYPE, images), "images", 0, "DIR",
     "with --page: show the images that the items' keys name in DIR"},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL, "print JSON Lines: an object for each query, and a summary"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "with --features: print the rates only"},

    {SMALTI_GROUP("Machine")},
    SMALTI_SESSION_ROWS(TYPE),
    SMALTI_TRACE_ROW(TYPE),
};

static const struct smalti_retrieve_query_settings defaults = {
    .top = 10, .rerank = SMALTI_RERANK_DEFAULTS, .session = SMALTI_SESSION_DEFAULTS};

static const struct smalti_example examples[] = {
    {"Find captions like a prompt", "smalti retrieve query captions 'a red star'"},
    {"Find images by a prompt, in an index that was made with projections",
     "smalti retrieve query images 'a red star'"},
    {"Find images like one of the index", "smalti retrieve query images --like images/17.png"},
    {"The same as a page with small copies of the images",
     "smalti retrieve query images --like images/17.png --page found.html --images data"},
    {"Find images by a prompt, the first ten in the order in which the transformer has them",
     "smalti retrieve query images 'a red star' --rerank 10"},
    {"How often is an item among the first ten that its other caption finds",
     "smalti retrieve query captions --features features --caption-key long --quiet"},
    {NULL, NULL},
};

struct query {
	const struct smalti_retrieve_query_settings *settings;
	struct smalti_session *session;
	struct smalti_task_group *cancelled; /* by a signal */
	struct smalti_index *index;
	struct smalti_queries queries;
	int64_t top, candidates, depth; /* of those that there are; the last: items that are searched for */
	struct smalti_found *found;     /* [queries, depth] */
	double *denoising;              /* [queries, candidates]; NULL: nothing is ranked anew */
	struct smalti_retrieve_page *page; /* NULL: none is asked for */
	int64_t pairs;                     /* queries whose key the index has */
	struct smalti_recall recall;       /* how often these find it */
	double began, seconds, rerank_seconds;
	struct smalti_progress shown; /* of ranking anew */
	bool broken;
};

/* Prints '?' for control characters: keys from outside must not move the cursor. */
static void put_text(const char *text)
{
	for (; *text; text++)
		putchar(iscntrl((unsigned char)*text) ? '?' : *text);
}

/* Returns an item's second score by its place in the list; NaN: it has none. */
static double denoising_of(const struct query *q, int64_t number, int64_t place)
{
	return place < q->candidates ? q->denoising[number * q->candidates + place] : NAN;
}

/* Prints an item's scores in columns. */
static void print_scores(const struct query *q, double score, double denoising)
{
	printf("  %7.4f  ", score);
	if (q->settings->candidates && isnan(denoising))
		printf("%9s  ", "-");
	else if (q->settings->candidates)
		printf("%9.6f  ", denoising);
}

static int print_match(const struct query *q, const struct smalti_found *found, double denoising,
		       cJSON *matches, struct smalti_error *error)
{
	struct smalti_index_item item;
	if (smalti_index_item(q->index, found->number, &item, error) < 0)
		return -1;
	if (q->page)
		smalti_retrieve_page_match(q->page, item.key, (double)found->score, denoising);
	if (matches) {
		cJSON *object = cJSON_CreateObject();
		cJSON_AddNumberToObject(object, "index", (double)item.index);
		(void)smalti_json_add_text(object, "key", item.key);
		cJSON_AddNumberToObject(object, "score", (double)found->score);
		if (!isnan(denoising))
			cJSON_AddNumberToObject(object, "denoising", denoising);
		cJSON_AddItemToArray(matches, object);
	} else {
		print_scores(q, (double)found->score, denoising);
		put_text(item.key);
		putchar('\n');
	}
	free(item.key);
	return 0;
}

static int print_query(struct query *q, int64_t number, struct smalti_error *error)
{
	const struct smalti_found *found = q->found + number * q->depth;
	cJSON *object = q->settings->json ? cJSON_CreateObject() : NULL;
	cJSON *matches = NULL;
	int status = 0;
	if (q->page)
		smalti_retrieve_page_query(q->page, q->queries.names[number]);
	if (object) {
		(void)smalti_json_add_text(object, "query", q->queries.names[number]);
		matches = cJSON_AddArrayToObject(object, "matches");
	} else {
		put_text(q->queries.names[number]);
		putchar('\n');
	}
	for (int64_t i = 0; i < q->top && found[i].number >= 0 && status == 0; i++)
		status = print_match(q, &found[i], denoising_of(q, number, i), matches, error);
	if (object)
		smalti_json_line(object, &q->broken);
	return status;
}

/* Counts whether the item with the query's key was found. */
static void rate(struct query *q, int64_t number)
{
	const struct smalti_found *found = q->found + number * q->depth;
	const int64_t own = smalti_index_find(q->index, q->queries.names[number], NULL);
	q->pairs += own >= 0;
	for (int64_t i = 0; i < q->top && own >= 0 && found[i].number >= 0; i++)
		if (found[i].number == own)
			smalti_recall_add(&q->recall, i);
}

static void add_rates(const struct query *q, cJSON *summary)
{
	cJSON_AddNumberToObject(summary, "without", (double)q->queries.skipped);
	cJSON_AddNumberToObject(summary, "pairs", (double)q->pairs);
	for (int i = 0; i < SMALTI_RECALL_DEPTHS && smalti_recall_depths[i] <= q->settings->top; i++) {
		char name[16];
		snprintf(name, sizeof(name), "R@%" PRId64, smalti_recall_depths[i]);
		cJSON_AddNumberToObject(summary, name, q->recall.at[i]);
	}
	cJSON_AddNumberToObject(summary, "MRR", q->recall.mrr);
}

static void print_summary(struct query *q)
{
	cJSON *object = cJSON_CreateObject();
	cJSON *summary = cJSON_AddObjectToObject(object, "summary");
	cJSON_AddNumberToObject(summary, "queries", (double)q->queries.count);
	if (q->settings->source.features)
		add_rates(q, summary);
	if (q->denoising)
		cJSON_AddNumberToObject(summary, "rerank_seconds", q->rerank_seconds);
	smalti_json_add_seconds(summary, q->seconds);
	smalti_device_json(summary, q->session);
	smalti_json_line(object, &q->broken);
}

static void print_rates(const struct query *q)
{
	printf("%" PRId64 " queries, %" PRId64 " of them with an item of their key:", q->queries.count,
	       q->pairs);
	for (int i = 0; i < SMALTI_RECALL_DEPTHS && smalti_recall_depths[i] <= q->settings->top; i++)
		printf(" R@%" PRId64 " %.4f,", smalti_recall_depths[i], q->recall.at[i]);
	printf(" MRR %.4f\n", q->recall.mrr);
}

static int print_all(struct query *q, struct smalti_error *error)
{
	const bool rated = q->settings->source.features;
	for (int64_t i = 0; i < q->queries.count && !q->broken; i++) {
		if (smalti_signals_caught())
			return smalti_fail(error, SMALTI_ECANCELLED, "stopped");
		if (rated)
			rate(q, i);
		if ((!rated || !q->settings->quiet) && print_query(q, i, error) < 0)
			return -1;
	}
	smalti_recall_end(&q->recall, q->pairs);
	if (q->settings->json && !q->broken)
		print_summary(q);
	else if (rated)
		print_rates(q);
	return 0;
}

static bool on_progress(void *user, int64_t done, int64_t total)
{
	struct query *q = user;
	smalti_progress_update(&q->shown, done, total);
	return !smalti_signals_caught();
}

/* Ranks the first items of each query anew. */
static int rerank_with(struct query *q, struct smalti_reranker *reranker, struct smalti_error *error)
{
	const int64_t candidates = q->candidates;
	int64_t count = candidates;
	if (!smalti_multiply(&count, q->queries.count))
		return smalti_fail(error, SMALTI_EINVAL,
				   "--rerank: %" PRId64 " items for %" PRId64 " queries", candidates,
				   q->queries.count);
	q->denoising = smalti_calloc(count, sizeof(*q->denoising), error);
	return q->denoising ? smalti_rerank(reranker, q->queries.count, q->depth, candidates,
					    smalti_queries_text, &q->queries, q->found, q->denoising, error)
			    : -1;
}

static int rerank(struct query *q, struct smalti_session *session, struct smalti_error *error)
{
	const double began = smalti_now();
	struct smalti_rerank_options options = q->settings->rerank;
	options.model = q->settings->source.model;
	options.on_progress = on_progress;
	options.user = q;
	struct smalti_reranker *reranker = smalti_reranker_open(q->index, session, &options, error);
	smalti_progress_begin(&q->shown, stderr, "forwards", q->settings->quiet);
	const int status = reranker ? rerank_with(q, reranker, error) : -1;
	smalti_progress_end(&q->shown);
	smalti_reranker_close(reranker);
	q->rerank_seconds = smalti_now() - began;
	return status;
}

static void cancel(void *task_group)
{
	smalti_task_group_cancel(task_group);
}

/* Lets the first signal cancel all work: none is worth finishing. */
static int open_index(struct query *q, const char *directory, struct smalti_error *error)
{
	q->cancelled = smalti_task_group_new(q->session, "cancelled", 0, error);
	q->index = q->cancelled ? smalti_index_open(directory, error) : NULL;
	if (!q->index)
		return -1;
	q->index->cancelled = q->cancelled;
	smalti_signals_first(cancel, q->cancelled);
	return smalti_signals_caught() ? smalti_fail(error, SMALTI_ECANCELLED, "stopped") : 0;
}

static void cut_to_items(struct query *q)
{
	struct smalti_index_info info;
	smalti_index_info(q->index, &info);
	q->top = smalti_min(q->settings->top, info.items);
	q->candidates = smalti_min(q->settings->candidates, info.items);
	q->depth = smalti_max(q->top, q->candidates);
}

static int search(struct query *q, struct smalti_session *session, const char *directory,
		  struct smalti_error *error)
{
	const struct smalti_retrieve_query_settings *settings = q->settings;
	q->session = session;
	if (open_index(q, directory, error) < 0 ||
	    (settings->candidates && smalti_queries_check_texts(&settings->source, q->index, error) < 0) ||
	    smalti_queries_read(&q->queries, &settings->source, q->index, session, error) < 0)
		return -1;
	cut_to_items(q);
	int64_t count = q->depth;
	if (!smalti_multiply(&count, q->queries.count))
		return smalti_fail(error, SMALTI_EINVAL, "--top: %" PRId64 " items for %" PRId64 " queries",
				   q->depth, q->queries.count);
	q->found = smalti_calloc(count, sizeof(*q->found), error);
	q->began = smalti_now();
	if (!q->found || smalti_index_search(q->index, session, q->queries.vectors, q->queries.count,
					     q->depth, q->found, error) < 0)
		return -1;
	q->seconds = smalti_now() - q->began;
	if (settings->candidates && rerank(q, session, error) < 0)
		return -1;
	return print_all(q, error);
}

/* Refuses what has a meaning with --rerank only. */
static int check_rerank(const struct smalti_retrieve_query_settings *s, struct smalti_error *error)
{
	const struct {
		const char *option;
		bool given;
	} table[] = {{"--latents", s->rerank.features},
		     {"--timesteps", s->has_timesteps},
		     {"--seed", s->has_seed},
		     {"--transformer", s->source.model.transformer},
		     {"--vae-model", s->source.model.vae},
		     {"--precision", s->source.model.precision != SMALTI_PRECISION_F32}};
	for (size_t i = 0; i < COUNT_OF(table) && !s->candidates; i++)
		if (table[i].given)
			return smalti_fail(error, SMALTI_EINVAL, "%s: has a meaning with --rerank only",
					   table[i].option);
	return 0;
}

/* Opens the page first, so that a bad path is known before the search. */
static int search_and_write(struct query *q, struct smalti_session *session, const char *directory,
			    struct smalti_error *error)
{
	const struct smalti_retrieve_query_settings *settings = q->settings;
	if (settings->images && !settings->page)
		return smalti_fail(error, SMALTI_EINVAL, "--images goes with --page");
	if (settings->page && settings->quiet)
		return smalti_fail(error, SMALTI_EINVAL, "--page and --quiet exclude each other");
	if (check_rerank(settings, error) < 0)
		return -1;
	if (settings->page) {
		q->page = smalti_retrieve_page_open(settings->page, directory, settings->images, error);
		if (!q->page)
			return -1;
	}
	const int status = search(q, session, directory, error);
	if (!q->page || status < 0) {
		smalti_retrieve_page_abort(q->page);
		return status;
	}
	return smalti_retrieve_page_commit(q->page, error);
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	struct smalti_retrieve_query_settings *settings = options;
	struct query query = {.settings = settings};
	struct smalti_error error = SMALTI_NO_ERROR;
	if (count == 0)
		return smalti_usage_error(&smalti_retrieve_query_command, "name an index");
	settings->source.texts = (const char *const *)operands + 1;
	settings->source.text_count = count - 1;
	smalti_signals_catch();
	smalti_signals_finish_within(1);
	struct smalti_session *session = smalti_held_session(&settings->session, &error);
	int status = session ? search_and_write(&query, session, operands[0], &error) : -1;
	if (status < 0)
		smalti_signals_blame(&error);
	smalti_signals_first(NULL, NULL);
	smalti_task_group_free(query.cancelled);
	smalti_queries_free(&query.queries);
	smalti_index_close(query.index);
	free(query.found);
	free(query.denoising);
	if (session && smalti_session_close(session, &error) < 0)
		status = -1;
	if (status < 0)
		return smalti_command_fail(&smalti_retrieve_query_command, &error);
	return query.broken ? SMALTI_EXIT_FAILED : smalti_finish_stdout();
}

const struct smalti_command smalti_retrieve_query_command = {
    .name = "smalti retrieve query",
    .summary = "find the items of an index that are most like a query",
    .operands = "INDEX [PROMPT]...",
    .description =
	"Finds the items of INDEX whose vectors have the largest cosine with the query's, the "
	"best first; of equal "
	"ones the first in the data set. A query is a prompt, an item of the index (--like), or a "
	"row of other features "
	"(--features) that were extracted with the same model. Images are found by prompts, and the "
	"other way, in an index that was made with projections (smalti retrieve train).\n\nEvery item is "
	"compared, and the "
	"result does not depend "
	"on workers or policy, nor on devices, but for the vectors of prompts, which a device rounds "
	"otherwise than "
	"a CPU.\n\nWith --features the item with the query's own key counts as the "
	"right one: R@1, R@5 and "
	"R@10 are the shares of queries that find it among so many, MRR is the mean of 1/rank, "
	"which is 0 beyond --top.\n\nWith --rerank K the first K items get a second score, and their order "
	"by it. It is how much "
	"less the transformer errs, when it tells the noise in an item's latents, with the query's "
	"caption than with the empty one: the mean over levels of noise, which are the same for all "
	"items. It takes the features that the index was made of, and for each query K forwards at "
	"each level.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
    .alone = true,
};
