# Sources of src/io
libcore_la_SOURCES += \
	src/io/braces.c src/io/braces.h \
	src/io/byte_reader.c src/io/byte_reader.h \
	src/io/caption.c src/io/caption.h src/io/cleaning.c src/io/cleaning.h \
	src/io/charsmap.c src/io/charsmap.h \
	src/io/checkpoint.c src/io/checkpoint.h \
	src/io/config_model.c src/io/config_transformer.c src/io/config_vae.c src/io/config_t5.c \
	src/io/config_scheduler.c src/io/config.h src/io/fields.c src/io/fields.h \
	src/io/dataset.c src/io/dataset.h src/io/dataset_format.h src/io/dataset_recognise.c \
	src/io/dataset_csv.c src/io/dataset_fields.c src/io/dataset_directory.c src/io/dataset_json.c \
	src/io/dataset_lines.c src/io/dataset_source.c src/io/dataset_source.h \
	src/io/dataset_tar.c src/io/dataset_tars.c src/io/dataset_text.c src/io/dataset_text.h \
	src/io/dataset_walk.c src/io/dataset_walk.h \
	src/io/entities.c src/io/entities.h \
	src/io/exif.c src/io/exif.h \
	src/io/fix_text.c src/io/fix_text.h src/io/html_text.c src/io/html_text.h \
	src/io/image.c src/io/image.h src/io/image_decoder.h \
	src/io/image_jpeg.c src/io/image_png.c src/io/image_webp.c \
	src/io/image_writer.c src/io/image_writer.h src/io/image_encoder.h src/io/write_png.c src/io/write_ppm.c \
	src/io/inventory.c src/io/inventory.h \
	src/io/latents.c src/io/latents.h \
	src/io/npy.c src/io/npy.h \
	src/io/pipeline_directory.c src/io/pipeline_directory.h \
	src/io/pattern.c src/io/pattern.h \
	src/io/png_reader.c src/io/png_reader.h src/io/png_text.c src/io/png_text.h \
	src/io/source.c src/io/source.h \
	src/io/prompts.c src/io/prompts.h src/io/prompt_json.c src/io/prompt_json.h \
	src/io/safetensors.c src/io/safetensors_write.c src/io/safetensors.h \
	src/io/spool.c src/io/spool.h \
	src/io/offload.c src/io/offload.h \
	src/io/special_tokens.c src/io/special_tokens.h \
	src/io/spiece.c src/io/spiece.h src/io/spiece_write.c src/io/spiece_write.h \
	src/io/tar.c src/io/tar.h \
	src/io/tar_writer.c src/io/tar_writer.h \
	src/io/tokenizer.c src/io/tokenizer.h \
	src/io/tokenizer_json.c src/io/tokenizer_json.h src/io/tokenizer_rules.c src/io/tokenizer_rules.h \
	src/io/upright.c src/io/upright.h \
	src/io/utf8.c src/io/utf8.h \
	src/io/zip_writer.c src/io/zip_writer.h

# The one C++ file is a library of its own: were it part of libcore, libtool would take libm and the
# C++ run-time library for the compiler's business and drop them, and the C compiler links the programs.
noinst_LTLIBRARIES += libshim.la
libshim_la_SOURCES = src/io/sentencepiece_shim.cc src/io/sentencepiece_shim.h
# The headers of libsentencepiece need std::string_view; a C compiler does not link what UBSan's vptr wants.
libshim_la_CXXFLAGS = $(AM_CXXFLAGS) -std=gnu++17 -fno-sanitize=vptr
libcore_la_LIBADD += libshim.la -lstdc++

# The table of HTML's entities is made from Python's; the tarball has it.
EXTRA_DIST += src/io/entities.def
MAINTAINERCLEANFILES = $(srcdir)/src/io/entities.def
$(srcdir)/src/io/entities.def: $(srcdir)/scripts/entities
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/scripts/entities >$@.part && mv $@.part $@
src/io/entities.lo: $(srcdir)/src/io/entities.def
