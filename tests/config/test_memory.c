/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/config/files.h"
#include "tests/harness/oom.h"

TEST(running_out_of_memory_anywhere_is_an_error_and_leaks_nothing)
{
    static const char text[] =
        "redis { url = u data = d }\n"
        "worker { plugin_path = { a, b } name = w drain = 1s }\n"
        "topic a { handler = h options = { 'x=1', 'y=2' } retry = none }\n"
        "topic b { kind = delay on_dead = a }\n";
    struct weir__config *config = NULL;
    int rc = WEIR_ENOMEM;
    int count = 0;

    write_bytes(text, strlen(text));
    for (; rc != WEIR_OK; count++) {
        oom_after(count);
        rc = read_config("w.conf", &config);
        oom_off();
        if (rc == WEIR_OK)
            break;
        EXPECT_INT(WEIR_ENOMEM, rc);
        EXPECT_CONTAINS("out of memory", told);
        EXPECT_TRUE(config == NULL);
        EXPECT_TRUE(count < 1000);
    }
    EXPECT_TRUE(count > 15);
    EXPECT_INT(2, config->topic_count);
    weir__config_free(config);
}
