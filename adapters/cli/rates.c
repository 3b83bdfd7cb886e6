/* SPDX-License-Identifier: MIT */
#include "adapters/cli/rates.h"

#include "core/mem.h"

#include <stdio.h>
#include <string.h>

static struct weir__rate *find(struct weir__rates *rates, const char *topic)
{
    for (size_t i = 0; i < rates->count; i++) {
        if (strcmp(rates->list[i].topic, topic) == 0)
            return &rates->list[i];
    }
    return NULL;
}

static struct weir__rate *add(struct weir__rates *rates, const char *topic)
{
    struct weir__rate *list =
        weir__mem_grow(rates->list, rates->count + 1, sizeof(*list));

    if (list == NULL)
        return NULL;
    rates->list = list;
    list += rates->count++;
    (void)snprintf(list->topic, sizeof(list->topic), "%s", topic); /* fits */
    return list;
}

double weir__rates_next(struct weir__rates *rates, const char *topic,
                        uint64_t total, double now_s)
{
    struct weir__rate *rate = find(rates, topic);
    double grown = -1.0;

    if (rate == NULL)
        rate = add(rates, topic);
    else if (now_s > rate->at_s)
        grown = (double)(total >= rate->total ? total - rate->total : total) /
                (now_s - rate->at_s);
    if (rate == NULL)
        return -1.0;
    rate->total = total;
    rate->at_s = now_s;
    return grown;
}

void weir__rates_fini(struct weir__rates *rates)
{
    weir__mem_free(rates->list);
    *rates = (struct weir__rates){0};
}
