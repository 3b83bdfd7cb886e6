/* SPDX-License-Identifier: MIT */
#include "adapters/cli/rates.h"

#include "core/mem.h"

#include <stdio.h>
#include <string.h>

/* --- one total ------------------------------------------------------------ */

enum { ENOUGH = 10 }; /* growth that is a rate, however short it took */

static const double WINDOW_S = 60.0;
static const double APART_S = 4.5; /* looks that are kept, at least */

/* The newest one takes the place of one that is not far enough behind. */
static void keep(struct weir__growth *growth, uint64_t total, double now_s)
{
    const bool is_near =
        growth->count > 1 && growth->at_s[0] - growth->at_s[1] < APART_S;
    const size_t kept =
        growth->count < WEIR__RATE_LOOKS ? growth->count : WEIR__RATE_LOOKS - 1;

    if (!is_near) {
        memmove(&growth->at_s[1], growth->at_s, kept * sizeof(double));
        memmove(&growth->total[1], growth->total, kept * sizeof(uint64_t));
        growth->count = kept + 1;
    }
    growth->at_s[0] = now_s;
    growth->total[0] = total;
    while (growth->count > 1 &&
           now_s - growth->at_s[growth->count - 2] >= WINDOW_S)
        growth->count--;
}

double weir__growth_take(struct weir__growth *growth, uint64_t total,
                         double now_s)
{
    double rate = -1.0;

    if (growth->count > 0 &&
        (total < growth->total[0] || now_s < growth->at_s[0]))
        growth->count = 0;
    for (size_t i = 0; i < growth->count; i++) {
        const uint64_t grown = total - growth->total[i];

        if (now_s <= growth->at_s[i])
            continue;
        rate = (double)grown / (now_s - growth->at_s[i]);
        if (grown >= ENOUGH)
            break;
    }
    keep(growth, total, now_s);
    return rate;
}

/* --- those of topics ------------------------------------------------------ */

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
    *list = (struct weir__rate){0};
    (void)snprintf(list->topic, sizeof(list->topic), "%s", topic); /* fits */
    return list;
}

double weir__rates_next(struct weir__rates *rates, const char *topic,
                        uint64_t total, double now_s)
{
    struct weir__rate *rate = find(rates, topic);

    if (rate == NULL)
        rate = add(rates, topic);
    return rate == NULL ? -1.0 : weir__growth_take(&rate->growth, total, now_s);
}

void weir__rates_fini(struct weir__rates *rates)
{
    weir__mem_free(rates->list);
    *rates = (struct weir__rates){0};
}
