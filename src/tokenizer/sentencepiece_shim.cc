/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/sentencepiece_shim.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <sentencepiece_processor.h>
#include <vector>

struct smalti_sentencepiece {
	sentencepiece::SentencePieceProcessor processor;
};

/* Runs `body`, which returns 0 or -1, and turns what it throws into an error. */
template <typename Body> static int guarded(struct smalti_error *error, Body body)
{
	try {
		return body();
	} catch (const std::bad_alloc &) {
		return smalti_fail(error, SMALTI_ENOMEM, "SentencePiece ran out of memory");
	} catch (const std::exception &exception) {
		return smalti_fail(error, SMALTI_EFORMAT, "SentencePiece: %s", exception.what());
	} catch (...) {
		return smalti_fail(error, SMALTI_EFORMAT, "SentencePiece failed without saying why");
	}
}

static int check(const sentencepiece::util::Status &status, struct smalti_error *error)
{
	if (status.ok())
		return 0;
	return smalti_fail(error, SMALTI_EFORMAT, "SentencePiece: %s", status.error_message());
}

struct smalti_sentencepiece *smalti_sentencepiece_open(const void *model, size_t length,
						       struct smalti_error *error)
{
	std::unique_ptr<smalti_sentencepiece> opened;
	int status = guarded(error, [&] {
		opened = std::make_unique<smalti_sentencepiece>();
		return check(opened->processor.LoadFromSerializedProto(
				 absl::string_view(static_cast<const char *>(model), length)),
			     error);
	});
	return status ? nullptr : opened.release();
}

void smalti_sentencepiece_close(struct smalti_sentencepiece *model)
{
	delete model;
}

int32_t smalti_sentencepiece_count(const struct smalti_sentencepiece *model)
{
	return model->processor.GetPieceSize();
}

int32_t smalti_sentencepiece_id(const struct smalti_sentencepiece *model, const char *piece)
{
	int32_t id = -1;
	guarded(nullptr, [&] {
		int found =
		    model->processor.PieceToId(piece); /* the unknown id where there is no such piece */
		if (model->processor.IdToPiece(found) == piece)
			id = found;
		return 0;
	});
	return id;
}

int smalti_sentencepiece_encode(const struct smalti_sentencepiece *model, const char *text, size_t length,
				int64_t capacity, int32_t *ids, int64_t *count, struct smalti_error *error)
{
	return guarded(error, [&] {
		std::vector<int> all;
		if (check(model->processor.Encode(absl::string_view(text, length), &all), error))
			return -1;
		*count = std::min(capacity, static_cast<int64_t>(all.size()));
		std::copy_n(all.begin(), *count, ids);
		return 0;
	});
}
