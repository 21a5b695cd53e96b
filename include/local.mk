smaltiincludedir = $(includedir)/smalti
smaltiinclude_HEADERS = \
	include/smalti/error.h
