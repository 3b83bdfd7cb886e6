/* SPDX-License-Identifier: MIT */

/* Any text as an error of a node: where it names an address that is one, and
 * an error with that address says the same. */

#include <string.h>

#include "adapters/redis/cluster/endpoint.h"
#include "adapters/redis/cluster/redirect.h"
#include "adapters/redis/cluster/slot.h"
#include "tests/fuzz/fuzz.h"

static void expect_same(const struct weir__redirect *redirect,
                        const struct weir__redis_host *asked)
{
    char text[WEIR__REDIS_TEXT_CAP + 32];
    struct weir__redirect again;

    (void)snprintf(text, sizeof(text), "%s %u %s:%u",
                   redirect->kind == WEIR__REDIRECT_ASK ? "ASK" : "MOVED",
                   redirect->slot, redirect->host.name, redirect->host.port);
    again = weir__redirect_read(text, asked);
    FUZZ_TRUE(again.has_target && again.kind == redirect->kind);
    FUZZ_TRUE(again.slot == redirect->slot);
    FUZZ_TRUE(weir__endpoint_equal(&again.host, &redirect->host));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct weir__redis_host asked = {"seed", 7000};
    char *text = fuzz_text(data, size);
    struct weir__redirect redirect = weir__redirect_read(text, &asked);

    if (redirect.has_target) {
        FUZZ_TRUE(redirect.kind == WEIR__REDIRECT_MOVED ||
                  redirect.kind == WEIR__REDIRECT_ASK);
        FUZZ_TRUE(redirect.slot < WEIR__CLUSTER_SLOTS);
        FUZZ_TRUE(redirect.host.port > 0 && redirect.host.name[0] != '\0');
        expect_same(&redirect, &asked);
    }
    free(text);
    return 0;
}
