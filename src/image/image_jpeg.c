/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_decoder.h"

#include <setjmp.h>
/* After stdio.h, which it needs. */
#include <jpeglib.h>
/* After jpeglib.h. */
#include <jerror.h>

/* A file of very many scans, each of few bytes, would keep the decoder busy for hours. */
enum { MARKER_BYTES = 65533, MAX_SCANS = 500 };

struct decoder {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr manager;
	struct jpeg_progress_mgr progress;
	jmp_buf jump;
	struct smalti_image_reader *image;
	bool header_read, started;
	int xmp_orientation; /* that counts where EXIF has none */
	uint8_t *cmyk;       /* a row */
	struct smalti_error cause;
	uint8_t marker[MARKER_BYTES];
};

static enum smalti_code code_of(int message)
{
	switch (message) {
	case JERR_OUT_OF_MEMORY:
		return SMALTI_ENOMEM;
	case JERR_FILE_READ:
		return SMALTI_EIO;
	case JERR_ARITH_NOTIMPL:
	case JERR_BAD_PRECISION:
	case JERR_CONVERSION_NOTIMPL:
	case JERR_COMPONENT_COUNT:
	case JERR_IMAGE_TOO_BIG:
	case JERR_SOF_UNSUPPORTED:
		return SMALTI_EUNSUPPORTED;
	default:
		return SMALTI_EFORMAT;
	}
}

/* Returns the row that is being read, or put together from the scans. */
static int64_t current_row(struct decoder *self)
{
	const struct jpeg_decompress_struct *jpeg = &self->jpeg;
	int64_t row = jpeg->output_scanline;
	if (row == 0 && jpeg_has_multiple_scans(&self->jpeg))
		row = (int64_t)jpeg->input_iMCU_row * jpeg->max_v_samp_factor * DCTSIZE;
	return row < self->image->info.height ? row : self->image->info.height;
}

static _Noreturn void give_up(struct decoder *self, enum smalti_code code, const char *why)
{
	const char *path = self->image->path;
	if (smalti_byte_source_failed(&self->image->source))
		smalti_fail_errno(&self->cause, "%s: cannot be read", path);
	else if (!self->header_read)
		smalti_fail(&self->cause, code, "%s: not a good JPEG file: %s, in its header", path, why);
	else
		smalti_fail(&self->cause, code,
			    "%s: not a good JPEG file: %s, at row %" PRId64 " of %" PRId64, path, why,
			    current_row(self), self->image->info.height);
	longjmp(self->jump, 1);
}

static _Noreturn void on_error(j_common_ptr jpeg)
{
	char text[JMSG_LENGTH_MAX];
	jpeg->err->format_message(jpeg, text);
	give_up(jpeg->client_data, code_of(jpeg->err->msg_code), text);
}

/* Tells whether bytes in front of a marker are no pixels': before the first scan, and behind the last row. */
static bool are_rows_beside(const struct jpeg_decompress_struct *jpeg)
{
	return jpeg->input_scan_number == 0 ||
	       (jpeg->output_height > 0 && jpeg->output_scanline == jpeg->output_height);
}

/* Warnings (level -1) mean that pixels are guessed, but for those about what is not used here. */
static void on_message(j_common_ptr jpeg, int level)
{
	const struct decoder *self = jpeg->client_data;
	const int code = jpeg->err->msg_code;
	if (level < 0 && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR &&
	    !(code == JWRN_EXTRANEOUS_DATA && are_rows_beside(&self->jpeg)))
		on_error(jpeg);
}

static void on_progress(j_common_ptr jpeg)
{
	struct decoder *self = jpeg->client_data;
	if (self->jpeg.input_scan_number > MAX_SCANS)
		give_up(self, SMALTI_EUNSUPPORTED, "more than 500 scans");
}

static int next_byte(j_decompress_ptr jpeg)
{
	struct jpeg_source_mgr *source = jpeg->src;
	if (!source->bytes_in_buffer)
		source->fill_input_buffer(jpeg);
	source->bytes_in_buffer--;
	return *source->next_input_byte++;
}

static const char xmp_prefix[] = "http://ns.adobe.com/xap/1.0/"; /* with the NUL */

static boolean on_app1(j_decompress_ptr jpeg)
{
	struct decoder *self = jpeg->client_data;
	int length = next_byte(jpeg) << 8;
	length += next_byte(jpeg) - 2;
	if (length < 0)
		ERREXIT(jpeg, JERR_BAD_LENGTH);
	for (int i = 0; i < length; i++)
		self->marker[i] = (uint8_t)next_byte(jpeg);
	const int xmp = (int)sizeof(xmp_prefix);
	if (length >= xmp && memcmp(self->marker, xmp_prefix, sizeof(xmp_prefix)) == 0)
		self->xmp_orientation = smalti_xmp_orientation(self->marker + xmp, length - xmp);
	else if (!self->image->info.orientation)
		self->image->info.orientation = smalti_exif_orientation(self->marker, length);
	return TRUE;
}

static int read_header(struct decoder *self, struct smalti_error *error)
{
	struct jpeg_decompress_struct *jpeg = &self->jpeg;
	jpeg->err = jpeg_std_error(&self->manager);
	jpeg->client_data = self;
	self->manager.error_exit = on_error;
	self->manager.emit_message = on_message;
	if (setjmp(self->jump))
		return smalti_pass(error, &self->cause);
	jpeg_create_decompress(jpeg);
	self->progress.progress_monitor = on_progress;
	jpeg->progress = &self->progress;
	const struct smalti_byte_source *source = &self->image->source;
	if (source->file)
		jpeg_stdio_src(jpeg, source->file);
	else
		jpeg_mem_src(jpeg, source->data, (unsigned long)source->left);
	jpeg_set_marker_processor(jpeg, JPEG_APP0 + 1, on_app1);
	jpeg_read_header(jpeg, TRUE);
	if (!self->image->info.orientation)
		self->image->info.orientation = self->xmp_orientation;
	return 0;
}

/* Checks the bytes of all coefficients, which the decoder keeps where the samples of a row lie in several
 * scans. */
static int check_memory(struct decoder *self, struct smalti_error *error)
{
	if (!jpeg_has_multiple_scans(&self->jpeg))
		return 0;
	int64_t bytes = 0;
	for (int i = 0; i < self->jpeg.num_components; i++) {
		const jpeg_component_info *component = &self->jpeg.comp_info[i];
		bytes += (int64_t)component->width_in_blocks * component->height_in_blocks *
			 (int64_t)sizeof(JBLOCK);
	}
	return smalti_image_hold(self->image, "a JPEG of several scans", bytes, error);
}

static int choose_colours(struct decoder *self, struct smalti_error *error)
{
	struct jpeg_decompress_struct *jpeg = &self->jpeg;
	switch (jpeg->num_components) {
	case 1:
	case 3:
		jpeg->out_color_space = JCS_RGB;
		return 0;
	case 4:
		jpeg->out_color_space = JCS_CMYK;
		self->cmyk = smalti_calloc(self->image->info.width, 4, error);
		return self->cmyk ? 0 : -1;
	default:
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: a JPEG of 1, 3 or 4 components was expected, this has %d; convert it",
				   self->image->path, jpeg->num_components);
	}
}

static int open_jpeg(struct smalti_image_reader *image, struct smalti_error *error)
{
	struct decoder *self = image->state;
	self->image = image;
	if (read_header(self, error) ||
	    smalti_image_admit(image, self->jpeg.image_width, self->jpeg.image_height, error))
		return -1;
	self->header_read = true;
	return check_memory(self, error) || choose_colours(self, error) ? -1 : 0;
}

/* Returns x · y / 255, rounded. */
static int scale(int x, int y)
{
	const int product = x * y + 128;
	return (product + (product >> 8)) >> 8;
}

/* Adobe's CMYK is inverted: 255 is no ink. */
static void cmyk_to_rgb(const uint8_t *cmyk, int64_t count, uint8_t *rgb)
{
	for (int64_t i = 0; i < count; i++)
		for (int c = 0; c < 3; c++) {
			const int white = cmyk[i * 4 + 3];
			rgb[i * 3 + c] = (uint8_t)(white - scale(255 - cmyk[i * 4 + c], white));
		}
}

static int read_rows(struct smalti_image_reader *image, int64_t count, uint8_t *rows,
		     struct smalti_error *error)
{
	struct decoder *self = image->state;
	const int64_t width = image->info.width;
	if (setjmp(self->jump))
		return smalti_pass(error, &self->cause);
	if (!self->started)
		jpeg_start_decompress(&self->jpeg);
	self->started = true;
	for (int64_t y = 0; y < count; y++) {
		uint8_t *to = rows + y * width * 3, *row = self->cmyk ? self->cmyk : to;
		jpeg_read_scanlines(&self->jpeg, &row, 1);
		if (self->cmyk)
			cmyk_to_rgb(self->cmyk, width, to);
	}
	if (self->jpeg.output_scanline == self->jpeg.output_height)
		jpeg_finish_decompress(&self->jpeg);
	return 0;
}

static void close_jpeg(void *state)
{
	struct decoder *self = state;
	jpeg_destroy_decompress(&self->jpeg);
	free(self->cmyk);
}

const struct smalti_image_decoder smalti_jpeg_decoder = {sizeof(struct decoder), open_jpeg, read_rows,
							 close_jpeg};
