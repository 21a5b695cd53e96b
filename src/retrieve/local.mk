# Sources of src/retrieve
libcore_la_SOURCES += \
	src/retrieve/index.c src/retrieve/index.h \
	src/retrieve/index_make.c \
	src/retrieve/files.c src/retrieve/files.h \
	src/retrieve/projection_data.c src/retrieve/projection_data.h \
	src/retrieve/projection_step.c src/retrieve/projection_step.h \
	src/retrieve/projections.c src/retrieve/projections.h \
	src/retrieve/projections_train.c \
	src/retrieve/queries.c \
	src/retrieve/recall.c src/retrieve/recall.h \
	src/retrieve/rerank.c src/retrieve/rerank.h \
	src/retrieve/rerank_open.c \
	src/retrieve/search.c \
	src/retrieve/vectors.c src/retrieve/vectors.h \
	src/retrieve/whitening.c src/retrieve/whitening.h
