/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_SCRATCH_H
#define WEIR_TEST_SCRATCH_H

/* A data directory for one test. A process of its own watches the test: when
 * that is over, in whatever way, the private server in the directory is killed
 * and the directory removed. */

/* Make one; the path is valid as long as the test runs. */
const char *scratch_dir(void);

#endif
