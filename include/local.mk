smaltiincludedir = $(includedir)/smalti
smaltiinclude_HEADERS = \
	include/smalti/error.h \
	include/smalti/export.h \
	include/smalti/extract.h \
	include/smalti/features.h \
	include/smalti/generate.h \
	include/smalti/model.h \
	include/smalti/retrieve.h \
	include/smalti/session.h \
	include/smalti/topology.h \
	include/smalti/train.h \
	include/smalti/vae.h \
	include/smalti/verify.h \
	include/smalti/version.h
