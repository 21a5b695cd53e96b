/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/bins.h"

#include <math.h>

/* Bins of 512, 1024 and 2048 are twice, four and eight times as large, bins of 128 half as large. */
static const struct smalti_bin bins_256[SMALTI_BINS_MAX] = {
    {0.25, 128, 512}, {0.26, 128, 496}, {0.27, 128, 480}, {0.28, 128, 464}, {0.32, 144, 448},
    {0.33, 144, 432}, {0.35, 144, 416}, {0.4, 160, 400},  {0.42, 160, 384}, {0.48, 176, 368},
    {0.5, 176, 352},  {0.52, 176, 336}, {0.57, 192, 336}, {0.6, 192, 320},  {0.68, 208, 304},
    {0.72, 208, 288}, {0.78, 224, 288}, {0.82, 224, 272}, {0.88, 240, 272}, {0.94, 240, 256},
    {1.0, 256, 256},  {1.07, 256, 240}, {1.13, 272, 240}, {1.21, 272, 224}, {1.29, 288, 224},
    {1.38, 288, 208}, {1.46, 304, 208}, {1.67, 320, 192}, {1.75, 336, 192}, {2.0, 352, 176},
    {2.09, 368, 176}, {2.4, 384, 160},  {2.5, 400, 160},  {2.89, 416, 144}, {3.0, 432, 144},
    {3.11, 448, 144}, {3.62, 464, 128}, {3.75, 480, 128}, {3.88, 496, 128}, {4.0, 512, 128}};
static const struct smalti_bin bins_2880[SMALTI_BINS_MAX] = {
    {0.25, 1408, 5760}, {0.26, 1408, 5568}, {0.27, 1408, 5376}, {0.28, 1408, 5184}, {0.32, 1600, 4992},
    {0.33, 1600, 4800}, {0.34, 1600, 4672}, {0.4, 1792, 4480},  {0.42, 1792, 4288}, {0.47, 1920, 4096},
    {0.49, 1920, 3904}, {0.51, 1920, 3776}, {0.55, 2112, 3840}, {0.59, 2112, 3584}, {0.68, 2304, 3392},
    {0.72, 2304, 3200}, {0.78, 2496, 3200}, {0.83, 2496, 3008}, {0.89, 2688, 3008}, {0.93, 2688, 2880},
    {1.0, 2880, 2880},  {1.07, 2880, 2688}, {1.12, 3008, 2688}, {1.21, 3008, 2496}, {1.28, 3200, 2496},
    {1.39, 3200, 2304}, {1.47, 3392, 2304}, {1.7, 3584, 2112},  {1.82, 3840, 2112}, {2.03, 3904, 1920},
    {2.13, 4096, 1920}, {2.39, 4288, 1792}, {2.5, 4480, 1792},  {2.92, 4672, 1600}, {3.0, 4800, 1600},
    {3.12, 4992, 1600}, {3.68, 5184, 1408}, {3.82, 5376, 1408}, {3.95, 5568, 1408}, {4.0, 5760, 1408}};

enum { SIDE_STEP = 16 };

/* The ratios that the pipelines of 256, 512 and 1024 leave out. */
static const double left_out[] = {0.26, 0.27, 2.89, 3.11, 3.62, 3.75, 3.88};

static const struct resolution {
	int64_t resolution;
	const struct smalti_bin *bins;
	int64_t base; /* resolution of `bins` */
	enum { NONE, SOME, ALL } in_pipeline;
} resolutions[] = {
    {128, bins_256, 256, NONE},  {256, bins_256, 256, SOME}, {512, bins_256, 256, SOME},
    {1024, bins_256, 256, SOME}, {2048, bins_256, 256, ALL}, {2880, bins_2880, 2880, NONE},
};

static const struct resolution *find(int64_t resolution, enum smalti_bins bins, struct smalti_error *error)
{
	const bool pipeline = bins == SMALTI_BINS_PIPELINE;
	for (size_t i = 0; i < COUNT_OF(resolutions); i++)
		if (resolutions[i].resolution == resolution &&
		    !(pipeline && resolutions[i].in_pipeline == NONE))
			return &resolutions[i];
	smalti_fail(error, SMALTI_EINVAL, "resolution bins: expected those of %s, found %lld",
		    pipeline ? "256, 512, 1024 or 2048" : "128, 256, 512, 1024, 2048 or 2880",
		    (long long)resolution);
	return NULL;
}

/* Tells whether a bin has whole patches of latents. */
static bool fits(const struct smalti_bin *bin)
{
	return bin->height % SIDE_STEP == 0 && bin->width % SIDE_STEP == 0;
}

static bool has(const struct resolution *resolution, enum smalti_bins bins, double ratio)
{
	if (bins == SMALTI_BINS_TRAINING || resolution->in_pipeline == ALL)
		return true;
	for (size_t i = 0; i < COUNT_OF(left_out); i++)
		if (left_out[i] == ratio)
			return false;
	return true;
}

int smalti_bins_list(int64_t resolution, enum smalti_bins bins, struct smalti_bin list[SMALTI_BINS_MAX],
		     struct smalti_error *error)
{
	const struct resolution *found = find(resolution, bins, error);
	if (!found)
		return -1;
	int count = 0;
	for (const struct smalti_bin *bin = found->bins; bin < found->bins + SMALTI_BINS_MAX; bin++) {
		const struct smalti_bin scaled = {.ratio = bin->ratio,
						  .height = bin->height * resolution / found->base,
						  .width = bin->width * resolution / found->base};
		if (has(found, bins, bin->ratio) && fits(&scaled))
			list[count++] = scaled;
	}
	return count;
}

int smalti_bins_nearest(int64_t resolution, enum smalti_bins bins, int64_t height, int64_t width,
			struct smalti_bin *bin, struct smalti_error *error)
{
	struct smalti_bin list[SMALTI_BINS_MAX];
	const int count = smalti_bins_list(resolution, bins, list, error);
	if (count < 0)
		return -1;
	if (height < 1 || width < 1)
		return smalti_fail(error, SMALTI_EINVAL,
				   "the bin of an image of %lldx%lld: expected sides of 1 or more",
				   (long long)width, (long long)height);
	const double ratio = (double)height / (double)width;
	*bin = list[0];
	for (int i = 1; i < count; i++)
		if (fabs(list[i].ratio - ratio) < fabs(bin->ratio - ratio))
			*bin = list[i];
	return 0;
}
