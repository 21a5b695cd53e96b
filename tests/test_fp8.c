/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fp8.h"
#include "golden.h"
#include "harness.h"

#include <math.h>

static const struct {
	const char *name;
	const struct smalti_fp8 *format;
} formats[] = {{"e4m3", &smalti_e4m3}, {"e5m2", &smalti_e5m2}};

static const struct smalti_tensor_view *find(const struct smalti_safetensors *file, const char *format,
					     const char *text)
{
	char name[64];
	snprintf(name, sizeof(name), text, format);
	const struct smalti_tensor_view *view = smalti_safetensors_find(file, name);
	CHECK(view, name);
	return view;
}

static void all_codes_have_their_values(void)
{
	struct smalti_safetensors *file = golden_open("golden/quant/linear.safetensors");
	uint8_t codes[256];
	float values[256];
	for (int i = 0; i < 256; i++)
		codes[i] = (uint8_t)i;
	for (int f = 0; f < COUNT(formats); f++) {
		float *expected = golden_values(find(file, formats[f].name, "%s.value"));
		smalti_fp8_widen(formats[f].format, codes, 256, values);
		for (int i = 0; i < 256; i++) {
			const bool nan = isnan(expected[i]);
			CHECK(nan ? isnan(values[i]) : values[i] == expected[i], formats[f].name);
			CHECK(nan || signbit(values[i]) == signbit(expected[i]), "sign");
			if (isfinite(values[i]))
				CHECK(smalti_fp8_narrow(formats[f].format, values[i]) == codes[i],
				      "there and back");
		}
		free(expected);
	}
	smalti_safetensors_close(file);
}

static void values_are_rounded_to_even_and_saturate(void)
{
	struct smalti_safetensors *file = golden_open("golden/quant/linear.safetensors");
	const struct smalti_tensor_view *in = smalti_safetensors_find(file, "round.in");
	float *values = golden_values(in);
	for (int f = 0; f < COUNT(formats); f++) {
		const uint8_t *codes = find(file, formats[f].name, "round.%s.saturated")->data;
		for (int64_t i = 0; i < in->shape[0]; i++) {
			const uint8_t code = smalti_fp8_narrow(formats[f].format, values[i]);
			const bool nan = (code & 0x7f) == 0x7f && (codes[i] & 0x7f) == 0x7f;
			char what[64];
			snprintf(what, sizeof(what), "%s of %a: 0x%02x, expected 0x%02x", formats[f].name,
				 (double)values[i], code, codes[i]);
			CHECK(nan || code == codes[i], what);
		}
	}
	free(values);
	smalti_safetensors_close(file);
}

static const struct test tests[] = {
    {"all codes", all_codes_have_their_values},
    {"rounding", values_are_rounded_to_even_and_saturate},
};

TEST_MAIN("numbers of 8 bits", tests)
