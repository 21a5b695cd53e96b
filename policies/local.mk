# Scheduling policies, each a library that any StarPU program loads (STARPU_SCHED_LIB).
policiesdir = $(pkglibdir)/policies
policies_LTLIBRARIES = policies/locality.la policies/nearest.la
policy_flags = -module -avoid-version -shared
policies_locality_la_SOURCES = policies/locality.c policies/policy.h
policies_locality_la_LIBADD = $(STARPU_LIBS)
policies_locality_la_LDFLAGS = $(policy_flags)
policies_nearest_la_SOURCES = policies/nearest.c policies/policy.h
policies_nearest_la_LIBADD = $(STARPU_LIBS)
policies_nearest_la_LDFLAGS = $(policy_flags)
# What a policy of one's own begins with.
policysourcesdir = $(pkgdatadir)/policies
dist_policysources_DATA = policies/locality.c policies/nearest.c policies/policy.h
