/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/chaos/model/model.h"

/* What becomes of leases. */

/* The lease that ran out first; of equal ones the token that is smaller as
 * text. NULL when none has run out, or only `but`. */
static struct lease *first_expired(struct model *model, uint64_t but)
{
    struct lease *first = NULL;
    char one[24], other[24] = "";

    for (size_t i = 0; i < model->lease_count; i++) {
        struct lease *lease = &model->leases[i];

        if (lease->deadline_ms >= model_now_ms(model) || lease->token == but)
            continue;
        (void)snprintf(one, sizeof(one), "%llu",
                       (unsigned long long)lease->token);
        if (first != NULL && (lease->deadline_ms > first->deadline_ms ||
                              (lease->deadline_ms == first->deadline_ms &&
                               strcmp(one, other) > 0)))
            continue;
        first = lease;
        memcpy(other, one, sizeof(other));
    }
    return first;
}

/* Two leases at most, with at most so many nodes each. */
void model_expire(struct model *model, int64_t grace_ms)
{
    uint64_t token = 0;

    if (grace_ms > 0)
        return;

    for (int i = 0; i < 2; i++) {
        struct lease *lease = first_expired(model, token);
        long long jobs, spared;
        size_t nodes;

        if (lease == NULL)
            return;
        token = lease->token;
        nodes =
            model_give_back(model, token, MOST_EXPIRED, true, &jobs, &spared);
        model_spare(model, lease, spared);
        if (nodes < MOST_EXPIRED)
            model_lease_end(model, token);
    }
}

/* How the worker crashed stands behind its name. */
static void note_crash(struct lease *lease)
{
    const char *text = text_of(&lease->held), *time = strrchr(text, '@');
    const char *worker = time;
    struct text noted = {0};

    while (worker > text && worker[-1] != '@')
        worker--;
    text_add(&noted, text, (size_t)(worker - text) + strcspn(worker, " @"));
    text_str(&noted, " SIGBUS");
    text_str(&noted, time);
    text_free(&lease->held);
    lease->held = noted;
}

void model_renew(struct model *model, const uint64_t *tokens, size_t count,
                 const struct renewal *renewal, struct text *answer)
{
    const char *gap = "";

    text_str(answer, "(");
    for (size_t i = 0; i < count; i++) {
        struct lease *lease = model_lease(model, tokens[i]);

        if (lease != NULL) {
            if (renewal->is_crash) {
                note_crash(lease);
                continue;
            }
            lease->deadline_ms = model_now_ms(model) + renewal->lease_ms;
            lease->length_ms = renewal->lease_ms;
            continue;
        }
        text_str(answer, gap);
        text_int(answer, (long long)tokens[i]);
        gap = " ";
    }
    text_str(answer, ")");
}

enum { MOST_HEALED = 16, SLACK_MS = 1000, LONGEST_MS = 3600000 };

static int ends_before(const void *one, const void *other)
{
    const struct lease *a = *(struct lease *const *)one;
    const struct lease *b = *(struct lease *const *)other;
    char texts[2][24];

    if (a->deadline_ms != b->deadline_ms)
        return a->deadline_ms < b->deadline_ms ? -1 : 1;
    (void)snprintf(texts[0], sizeof(texts[0]), "%llu",
                   (unsigned long long)a->token);
    (void)snprintf(texts[1], sizeof(texts[1]), "%llu",
                   (unsigned long long)b->token);
    return strcmp(texts[0], texts[1]);
}

/* Leases that the clock set too far ahead, some at a time: if the first one is
 * such a lease, and now and then. */
void model_heal_leases(struct model *model, int64_t own_ms,
                       unsigned long long jobs)
{
    struct lease **far = calloc(model->lease_count + 1, sizeof(*far));
    int64_t now_ms = model_now_ms(model);
    size_t count = 0, from = 0;

    if (far == NULL)
        abort();
    for (size_t i = 0; i < model->lease_count; i++)
        if (model->leases[i].deadline_ms > now_ms + own_ms + SLACK_MS)
            far[count++] = &model->leases[i];
    qsort(far, count, sizeof(struct lease *), ends_before);
    if (count > MOST_HEALED)
        from = (size_t)(now_ms % (int64_t)(count - MOST_HEALED + 1));
    if (count < model->lease_count && now_ms % 64 != 0 &&
        (jobs > 0 || now_ms % 8 != 0))
        count = 0; /* the first one ends in time */
    for (size_t i = from; i < count && i < from + MOST_HEALED; i++) {
        int64_t length_ms = far[i]->length_ms;

        if (length_ms > LONGEST_MS)
            length_ms = LONGEST_MS;
        if (length_ms < own_ms)
            length_ms = own_ms;
        if (far[i]->deadline_ms > now_ms + length_ms + SLACK_MS)
            far[i]->deadline_ms = now_ms + length_ms;
    }
    free(far);
}
