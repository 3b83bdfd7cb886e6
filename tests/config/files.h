/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_FILES_H
#define WEIR_TEST_FILES_H

/* Configuration files for a test: each is w.conf in the directory of the
 * test, which becomes the working directory. */

#include "adapters/config/config.h"
#include "tests/harness/test.h"

/* Write w.conf. */
void write_bytes(const void *bytes, size_t len);

/* What the last reading told, a line each. */
extern char told[4096];

int read_config(const char *path, struct weir__config **ret_config);

/* Read a file with this text, which is right. The caller frees it. */
struct weir__config *config_of(const char *text);

struct refusal {
    const char *text;
    const char *sentence; /* exactly; of each mistake, a line each */
};

/* Each text is refused with its sentences and WEIR_EINVAL, and a text that is
 * right is read afterwards. */
void expect_refused(const struct refusal *refusals, size_t count);

#define EXPECT_REFUSED(refusals) \
    expect_refused(refusals, sizeof(refusals) / sizeof((refusals)[0]))

#endif
