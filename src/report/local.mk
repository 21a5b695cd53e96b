# Pages about extractions, training runs and what was found: what the commands and smalti-bench write them with.
noinst_LTLIBRARIES += libreport.la
libreport_la_SOURCES = \
	src/report/extraction.c \
	src/report/failures.c \
	src/report/page.c src/report/page.h \
	src/report/report.c src/report/report.h \
	src/report/retrieve_page.c src/report/retrieve_page.h \
	src/report/samples.c src/report/samples.h \
	src/report/small_image.c src/report/small_image.h \
	src/report/training.c src/report/training.h

# The page of reports, with the library that draws its charts.
EXTRA_DIST += src/report/page.html.in
CLEANFILES += src/report/page.html
src/report/page.html: src/report/page.html.in $(CHARTJS)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -e '/^@CHART@$$/{' -e 'r $(CHARTJS)' -e 'd' -e '}' \
		$(srcdir)/src/report/page.html.in >$@.part && mv $@.part $@
src/report/page.lo: src/report/page.html
