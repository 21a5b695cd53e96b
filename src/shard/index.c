/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/index.h"
#include "base/file.h"

#include <xxhash.h>

/* "smalti shard 2 HASH-OF-THE-REST HASH-OF-THE-INDEX LENGTH-OF-THE-INDEX\n" */
#define MARK    "smalti shard "
#define TRAILER MARK "%d %016" PRIx64 " %016" PRIx64 " %012" PRId64 "\n"
enum { VERSION_AT = 13, INDEX_AT = 32, LENGTH_AT = 49, LENGTH_DIGITS = 12, ENTRY_MAX = 1 << 23 };
enum { HEAD = sizeof(struct smalti_shard_head), PIECE = sizeof(struct smalti_shard_piece) };
static const int64_t LARGEST = (INT64_C(1) << 53) - 1; /* number of anything */
/* No byte of DEFLATE becomes more than 1,032: what claims to is not believed. */
static const int64_t INFLATION_MAX = 1100;

static const char hdf5_begins[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};

bool smalti_shard_is_compressed(const struct smalti_shard_index *index, int array)
{
	return index->schema.compress && smalti_shard_array_kind(array)->unit == SMALTI_UNIT_VALUE;
}

uint64_t smalti_shard_piece_checksum(const char *file, const struct smalti_shard_piece *piece)
{
	return XXH3_64bits(file + piece->offset, (size_t)piece->bytes);
}

static int damaged(const char *what, int64_t found, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_ECORRUPT, "its index: %s: %" PRId64, what, found);
}

static int64_t count_of(const struct smalti_shard_head *head, int array)
{
	switch (smalti_shard_array_kind(array)->axis) {
	case SMALTI_PER_ROW:
		return head->rows;
	case SMALTI_PER_FAILURE:
		return head->failures;
	case SMALTI_PER_TOKEN:
		return head->tokens[smalti_shard_array_caption(array)];
	default:
		return head->image_values;
	}
}

/* Fills in what the head and the schema say of an array. */
static int place_array(struct smalti_shard_index *index, int array, struct smalti_error *error)
{
	struct smalti_shard_place *place = &index->places[array];
	const int64_t chunk = smalti_shard_chunk(&index->schema, array);
	place->count = count_of(&index->head, array);
	place->entry_bytes = smalti_shard_entry_bytes(&index->schema, array);
	for (int i = 0; i < SMALTI_SHARD_TEXTS; i++)
		if (array == (int)smalti_shard_texts[i])
			place->entry_bytes = index->head.text_bytes[i];
	if (place->count < 0 || place->count > LARGEST)
		return damaged("an impossible number of entries", place->count, error);
	if (place->entry_bytes < 1 || place->entry_bytes > ENTRY_MAX)
		return damaged("entries of an impossible size", place->entry_bytes, error);
	place->chunk = chunk && chunk < place->count ? chunk : place->count;
	place->piece_count = place->count ? (place->count - 1) / place->chunk + 1 : 0;
	return 0;
}

static int place_arrays(struct smalti_shard_index *index, int64_t *pieces, struct smalti_error *error)
{
	*pieces = 0;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++) {
		if (!smalti_shard_has(&index->schema, array))
			continue;
		if (place_array(index, array, error))
			return -1;
		*pieces += index->places[array].piece_count;
	}
	return *pieces > LARGEST / PIECE ? damaged("an impossible number of pieces", *pieces, error) : 0;
}

/* Finds the pieces, behind the texts, which end at `at`. */
static void find_pieces(struct smalti_shard_index *index, int64_t at)
{
	struct smalti_shard_piece *pieces = (void *)(index->bytes + smalti_round_up(at, 8));
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++) {
		index->places[array].pieces = pieces;
		pieces += index->places[array].piece_count;
	}
}

/* Returns text number 0, 1 and so on of a schema: its captions and its provenance. */
static const char **text_of(struct smalti_shard_schema *schema, int number)
{
	return number < schema->caption_count ? &schema->captions[number] : &schema->provenance;
}

/* Writing. */

int smalti_shard_index_make(struct smalti_shard_index *index, const struct smalti_shard_head *head,
			    const struct smalti_shard_schema *schema, struct smalti_error *error)
{
	int64_t at = HEAD, pieces;
	*index = (struct smalti_shard_index){.head = *head, .schema = *schema};
	index->head.dtype = schema->dtype;
	index->head.captions = schema->caption_count;
	index->head.text_width = schema->text_width;
	index->head.max_tokens = schema->max_tokens;
	index->head.latent_channels = schema->latent_channels;
	index->head.image_size = schema->image_size;
	index->head.compress = schema->compress;
	index->head.scaling_factor = schema->scaling_factor;
	for (int i = 0; i <= schema->caption_count; i++)
		at += (int64_t)strlen(*text_of(&index->schema, i)) + 1;
	if (place_arrays(index, &pieces, error))
		return -1;
	index->length = smalti_round_up(at, 8) + pieces * PIECE;
	index->bytes = smalti_calloc(index->length, 1, error);
	if (!index->bytes)
		return -1;
	find_pieces(index, at);
	memcpy(index->bytes, &index->head, HEAD);
	char *to = index->bytes + HEAD;
	for (int i = 0; i <= schema->caption_count; i++)
		to = stpcpy(to, *text_of(&index->schema, i)) + 1;
	return 0;
}

/* Hashes a mapped file's pieces; its pages do not stay this process's own. */
static void hash_pieces(struct smalti_shard_place *place, const char *file)
{
	for (int64_t i = 0; i < place->piece_count; i++) {
		struct smalti_shard_piece *piece = &place->pieces[i];
		piece->checksum = smalti_shard_piece_checksum(file, piece);
		smalti_map_drop(file + piece->offset, piece->bytes);
	}
}

struct span {
	int64_t begin, end;
};

static int by_begin(const void *left, const void *right)
{
	const struct span *a = left, *b = right;
	return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Adds the bytes that rows' checksums or those of compressed pieces cover. */
static int64_t add_spans(const struct smalti_shard_index *index, int array, struct span *spans)
{
	const struct smalti_shard_place *place = &index->places[array];
	for (int64_t i = 0; i < place->piece_count; i++) {
		const int64_t used =
		    smalti_min(place->count - i * place->chunk, place->chunk) * place->entry_bytes;
		const struct smalti_shard_piece *piece = &place->pieces[i];
		const bool compressed = smalti_shard_is_compressed(index, array);
		spans[i] = (struct span){piece->offset, piece->offset + (compressed ? piece->bytes : used)};
	}
	return place->piece_count;
}

/* Computes XXH3 over all of the file but these spans. */
static int hash_rest(const char *file, int64_t size, struct span *spans, int64_t count, uint64_t *hash,
		     struct smalti_error *error)
{
	XXH3_state_t *state = XXH3_createState();
	if (!state)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a checksum");
	XXH3_64bits_reset(state);
	qsort(spans, (size_t)count, sizeof(*spans), by_begin);
	int64_t at = 0;
	for (int64_t i = 0; i <= count; i++) {
		const int64_t begin = i < count ? spans[i].begin : size;
		if (begin > at)
			XXH3_64bits_update(state, file + at, (size_t)(begin - at));
		if (i < count && spans[i].end > at)
			at = spans[i].end;
	}
	*hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return 0;
}

static int rest_checksum(const struct smalti_shard_index *index, const char *file, int64_t size,
			 uint64_t *hash, struct smalti_error *error)
{
	int64_t count = 0, filled = 0;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (smalti_shard_array_kind(array)->unit == SMALTI_UNIT_VALUE)
			count += index->places[array].piece_count;
	SCOPED(free) struct span *spans = smalti_calloc(count + 1, sizeof(*spans), error);
	if (!spans)
		return -1;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (smalti_shard_array_kind(array)->unit == SMALTI_UNIT_VALUE)
			filled += add_spans(index, array, spans + filled);
	return hash_rest(file, size, spans, filled, hash, error);
}

int smalti_shard_index_seal(struct smalti_shard_index *index, const char *file, int64_t size,
			    char line[SMALTI_SHARD_TRAILER + 1], struct smalti_error *error)
{
	uint64_t rest;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (smalti_shard_is_compressed(index, array))
			hash_pieces(&index->places[array], file);
	if (rest_checksum(index, file, size, &rest, error) < 0)
		return -1;
	snprintf(line, SMALTI_SHARD_TRAILER + 1, TRAILER, SMALTI_SHARD_VERSION, rest,
		 XXH3_64bits(index->bytes, (size_t)index->length), index->length);
	return 0;
}

/* Reading. */

static int read_schema(struct smalti_shard_index *index, struct smalti_error *error)
{
	const struct smalti_shard_head *head = &index->head;
	if (head->first < 0 || head->first > LARGEST / 2 || head->rows < 0 || head->rows > LARGEST / 2)
		return damaged("an impossible number of rows", head->rows, error);
	if (head->dtype < SMALTI_F32 || head->dtype > SMALTI_BF16)
		return damaged("values of an unknown type", head->dtype, error);
	if (head->captions < 0 || head->captions > SMALTI_FEATURES_CAPTIONS_MAX)
		return damaged("an impossible number of captions", head->captions, error);
	index->schema = (struct smalti_shard_schema){
	    .dtype = (enum smalti_dtype)head->dtype,
	    .caption_count = (int)head->captions,
	    .text_width = head->text_width,
	    .max_tokens = head->max_tokens,
	    .latent_channels = head->latent_channels,
	    .image_size = head->image_size,
	    .scaling_factor = head->scaling_factor,
	    .compress = head->compress,
	};
	return 0;
}

/* Reads the texts; their end goes to *at. */
static int read_texts(struct smalti_shard_index *index, int64_t *at, struct smalti_error *error)
{
	*at = HEAD;
	for (int i = 0; i <= index->schema.caption_count; i++) {
		const char *text = index->bytes + *at;
		if (*at >= index->length || !memchr(text, '\0', (size_t)(index->length - *at)))
			return damaged("a text that has no end: number", i, error);
		*text_of(&index->schema, i) = text;
		*at += (int64_t)strlen(text) + 1;
	}
	return smalti_shard_check_schema(&index->schema, error);
}

/* Tells whether a piece lies in the file and is as large as it has to be. */
static bool check_piece(const struct smalti_shard_piece *piece, int64_t chunk_bytes, bool compressed,
			int64_t size)
{
	if (piece->bytes < 0 || piece->bytes > size || piece->offset < 0 ||
	    piece->offset > size - piece->bytes)
		return false;
	return piece->bytes == chunk_bytes ||
	       (compressed && piece->bytes < chunk_bytes && piece->bytes >= chunk_bytes / INFLATION_MAX);
}

static int check_pieces(const struct smalti_shard_index *index, int array, int64_t size,
			struct smalti_error *error)
{
	const struct smalti_shard_place *place = &index->places[array];
	int64_t chunk_bytes = place->chunk;
	if (!smalti_multiply(&chunk_bytes, place->entry_bytes))
		return damaged("chunks of an impossible size", place->chunk, error);
	for (int64_t i = 0; i < place->piece_count; i++)
		if (!check_piece(&place->pieces[i], chunk_bytes, smalti_shard_is_compressed(index, array),
				 size))
			return damaged("a piece that is not in the file", place->pieces[i].offset, error);
	return 0;
}

int smalti_shard_index_parse(struct smalti_shard_index *index, const void *bytes, int64_t length,
			     int64_t size, struct smalti_error *error)
{
	int64_t at, pieces;
	*index = (struct smalti_shard_index){.length = length};
	if (length < HEAD)
		return damaged("too short", length, error);
	index->bytes = smalti_calloc(length, 1, error);
	if (!index->bytes)
		return -1;
	memcpy(index->bytes, bytes, (size_t)length);
	memcpy(&index->head, bytes, HEAD);
	if (read_schema(index, error) || read_texts(index, &at, error) || place_arrays(index, &pieces, error))
		return -1;
	if (length != smalti_round_up(at, 8) + pieces * PIECE)
		return damaged("another length than its counts have", length, error);
	find_pieces(index, at);
	int status = 0;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS && status == 0; array++)
		status = check_pieces(index, array, size, error);
	return status;
}

/* Finds the index in front of the last line; the caller compares that line as a whole. */
static int find_index(const char *file, int64_t size, const char **bytes, int64_t *length,
		      struct smalti_error *error)
{
	if (size < (int64_t)sizeof(hdf5_begins) || memcmp(file, hdf5_begins, sizeof(hdf5_begins)) != 0)
		return smalti_fail(error, SMALTI_EFORMAT, "no shard of features: not an HDF5 file");
	const char *line = file + size - SMALTI_SHARD_TRAILER;
	char digits[LENGTH_DIGITS + 1] = "";
	if (size > SMALTI_SHARD_TRAILER)
		memcpy(digits, line + LENGTH_AT, LENGTH_DIGITS);
	*length = strtoll(digits, NULL, 10);
	if (size <= SMALTI_SHARD_TRAILER || memcmp(line, MARK, strlen(MARK)) != 0 || *length <= 0 ||
	    *length > size - SMALTI_SHARD_TRAILER)
		return smalti_fail(error, SMALTI_ECORRUPT,
				   "its last line is not that of a shard: truncated, changed or no shard");
	if (line[VERSION_AT] != '0' + SMALTI_SHARD_VERSION && line[VERSION_AT + 1] == ' ')
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "a shard of version %d was expected, found %c: extract the features again "
				   "with this smalti, or use the one that made it",
				   SMALTI_SHARD_VERSION, line[VERSION_AT]);
	*bytes = line - *length;
	return 0;
}

int smalti_shard_index_read(struct smalti_shard_index *index, const char *file, int64_t size, bool unchecked,
			    struct smalti_error *error)
{
	*index = (struct smalti_shard_index){.length = 0};
	const char *bytes = NULL;
	int64_t length = 0;
	uint64_t rest = 0;
	if (find_index(file, size, &bytes, &length, error) < 0)
		return -1;
	const uint64_t hash = XXH3_64bits(bytes, (size_t)length);
	char expected[SMALTI_SHARD_TRAILER + 1], mark[16 + 2];
	snprintf(mark, sizeof(mark), "%016" PRIx64 " ", hash);
	if (memcmp(bytes + length + INDEX_AT, mark, 17) != 0)
		return smalti_fail(error, SMALTI_ECORRUPT, "the checksum of its index is another: damaged");
	if (smalti_shard_index_parse(index, bytes, length, bytes - file, error) < 0)
		return -1;
	index->seal = XXH3_64bits(bytes + length, SMALTI_SHARD_TRAILER);
	if (unchecked)
		return 0;
	if (rest_checksum(index, file, bytes - file, &rest, error) < 0)
		return -1;
	snprintf(expected, sizeof(expected), TRAILER, SMALTI_SHARD_VERSION, rest, hash, length);
	if (memcmp(bytes + length, expected, SMALTI_SHARD_TRAILER) != 0)
		return smalti_fail(error, SMALTI_ECORRUPT,
				   "the checksum of what is not values is another: all its rows (%" PRId64
				   " to %" PRId64 ") are lost",
				   index->head.first, index->head.first + index->head.rows - 1);
	return 0;
}

void smalti_shard_index_free(struct smalti_shard_index *index)
{
	free(index->bytes);
	*index = (struct smalti_shard_index){.length = 0};
}
