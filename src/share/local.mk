# Sources of src/share
libcore_la_SOURCES += \
	src/share/claims.c src/share/claims.h \
	src/share/heartbeat.c src/share/hold.c src/share/hold.h \
	src/share/identity.c src/share/identity.h \
	src/share/list.c src/share/list.h \
	src/share/lock.c src/share/lock.h \
	src/share/member.c src/share/member.h \
	src/share/range.c src/share/range.h \
	src/share/spans.c src/share/spans.h \
	src/share/take.c src/share/take.h
