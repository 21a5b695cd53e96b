/* SPDX-License-Identifier: Apache-2.0 */
#include "bad_dataset.h"

#include <stdio.h>

/* For tests of the command: make_bad_dataset DIRECTORY. */
int main(int count, char **arguments)
{
	if (count != 2) {
		fprintf(stderr, "usage: make_bad_dataset DIRECTORY\n");
		return 2;
	}
	bad_dataset_write(arguments[1]);
	return 0;
}
