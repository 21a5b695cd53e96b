/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/linear_program.h"

#include <math.h>

#ifdef HAVE_GLPK
#include <glpk.h>

enum { MAX_SECONDS = 60 };

struct smalti_linear_program {
	glp_prob *rows;
	int *index; /* of the row that is being made, as are the next two; GLPK counts from 1 */
	double *value;
	int length;
};

struct smalti_linear_program *smalti_linear_program_new(int64_t columns)
{
	struct smalti_linear_program *program = smalti_calloc(1, sizeof(*program), NULL);
	if (!program)
		return NULL;
	program->index = smalti_calloc(columns + 1, sizeof(*program->index), NULL);
	program->value = smalti_calloc(columns + 1, sizeof(*program->value), NULL);
	glp_term_out(GLP_OFF);
	program->rows = glp_create_prob();
	if (!program->index || !program->value) {
		smalti_linear_program_free(program);
		return NULL;
	}
	glp_add_cols(program->rows, (int)columns);
	glp_set_obj_dir(program->rows, GLP_MIN);
	glp_set_obj_coef(program->rows, 1, 1);
	for (int column = 1; column <= columns; column++)
		glp_set_col_bnds(program->rows, column, GLP_LO, 0, 0);
	return program;
}

void smalti_linear_program_free(struct smalti_linear_program *program)
{
	if (!program)
		return;
	glp_delete_prob(program->rows);
	free(program->index);
	free(program->value);
	free(program);
}

void smalti_linear_program_leave_out(struct smalti_linear_program *program, int column)
{
	glp_set_col_bnds(program->rows, column, GLP_FX, 0, 0);
}

void smalti_linear_program_add(struct smalti_linear_program *program, int column, double value)
{
	program->length++;
	program->index[program->length] = column;
	program->value[program->length] = value;
}

static void end_row(struct smalti_linear_program *program, int type, double bound)
{
	const int number = glp_add_rows(program->rows, 1);
	glp_set_row_bnds(program->rows, number, type, bound, bound);
	glp_set_mat_row(program->rows, number, program->length, program->index, program->value);
	program->length = 0;
}

void smalti_linear_program_equal(struct smalti_linear_program *program, double bound)
{
	end_row(program, GLP_FX, bound);
}

void smalti_linear_program_at_least(struct smalti_linear_program *program, double bound)
{
	end_row(program, GLP_LO, bound);
}

double smalti_linear_program_solve(struct smalti_linear_program *program)
{
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	options.meth = GLP_DUALP;
	options.presolve = GLP_ON;
	options.tm_lim = 1000 * MAX_SECONDS;
	const bool solved =
	    glp_simplex(program->rows, &options) == 0 && glp_get_status(program->rows) == GLP_OPT;
	return solved ? glp_get_obj_val(program->rows) : (double)NAN;
}
#else
struct smalti_linear_program *smalti_linear_program_new(int64_t columns)
{
	(void)columns;
	return NULL;
}

void smalti_linear_program_free(struct smalti_linear_program *program)
{
	(void)program;
}

void smalti_linear_program_leave_out(struct smalti_linear_program *program, int column)
{
	(void)program, (void)column;
}

void smalti_linear_program_add(struct smalti_linear_program *program, int column, double value)
{
	(void)program, (void)column, (void)value;
}

void smalti_linear_program_equal(struct smalti_linear_program *program, double bound)
{
	(void)program, (void)bound;
}

void smalti_linear_program_at_least(struct smalti_linear_program *program, double bound)
{
	(void)program, (void)bound;
}

double smalti_linear_program_solve(struct smalti_linear_program *program)
{
	(void)program;
	return (double)NAN;
}
#endif
