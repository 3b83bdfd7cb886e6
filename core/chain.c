/* SPDX-License-Identifier: MIT */
#include "core/chain.h"

#include <string.h>

#include "core/assert.h"
#include "core/error.h"

static void append(struct weir__chain *chain, const char *text)
{
    size_t used = strlen(chain->text), len = strlen(text);

    if (len > sizeof(chain->text) - 1 - used)
        len = sizeof(chain->text) - 1 - used;
    memcpy(chain->text + used, text, len);
}

int weir__chain_add(struct weir__chain *chain, const char *topic,
                    struct weir_error *err)
{
    WEIR_ASSERT(strlen(topic) <= WEIR_MAX_TOPIC);
    if (chain->count == WEIR__CHAIN_MAX)
        return WEIR_EFULL;
    if (chain->count > 0)
        append(chain, " -> ");
    append(chain, topic);
    if (chain->count++ == 0)
        memcpy(chain->first, topic, strlen(topic) + 1);
    else if (strcmp(chain->first, topic) == 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "on_dead: dead jobs would go round for ever, "
                               "%s: write none in one of these topics",
                               chain->text);
    return WEIR_OK;
}
