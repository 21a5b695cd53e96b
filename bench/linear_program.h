/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A linear program that minimises its first column. Columns are numbered from 1 and are at least 0. GLPK
 * solves it. */
struct smalti_linear_program;

/* NULL without memory, or if Smalti was built without GLPK. */
struct smalti_linear_program *smalti_linear_program_new(int64_t columns);
void smalti_linear_program_free(struct smalti_linear_program *program); /* NULL is fine */
/* Lets a column be 0. */
void smalti_linear_program_leave_out(struct smalti_linear_program *program, int column);
/* Adds value times the column to the row that is being made. */
void smalti_linear_program_add(struct smalti_linear_program *program, int column, double value);
/* Ends the row: its sum is the bound, or at least the bound. @{ */
void smalti_linear_program_equal(struct smalti_linear_program *program, double bound);
void smalti_linear_program_at_least(struct smalti_linear_program *program, double bound);
/* @} */
/* Returns the optimum; NAN: none was found within a minute. */
double smalti_linear_program_solve(struct smalti_linear_program *program);
