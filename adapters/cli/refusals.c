/* SPDX-License-Identifier: MIT */
#include "adapters/cli/refusals.h"

#include "adapters/cli/output.h"
#include "core/mem.h"
#include "core/text.h"

#include <string.h>

enum { SENTENCE_MAX = 240 };

static const char DEFAULT_MAX_BODY[] = "1MiB";
_Static_assert(WEIR_MAX_BODY == 1024 * 1024, "as DEFAULT_MAX_BODY says");

bool weir__is_limit(int code)
{
    return code == WEIR_ETOOBIG || code == WEIR_EFULL || code == WEIR_EDROPPED;
}

void weir__refusals_init(struct weir__refusals *refusals)
{
    refusals->first = NULL;
    refusals->end = &refusals->first;
}

bool weir__refusals_wait(const struct weir__refusals *refusals)
{
    return refusals->first != NULL;
}

/* --- saying ------------------------------------------------------------- */

/* Of bounded topics. */
static void write_bounded(const struct weir__refusals *refusals,
                          const struct weir__refusal *refusal,
                          char ret_text[SENTENCE_MAX])
{
    if (refusal->code == WEIR_ETOOBIG)
        (void)snprintf(ret_text, SENTENCE_MAX,
                       "body of %zu bytes is larger than an event may be (%s)",
                       refusal->body_len, DEFAULT_MAX_BODY); /* fits */
    else
        (void)snprintf(ret_text, SENTENCE_MAX,
                       "its group is full and topic \"%s\" %s new events; run "
                       "a worker, or raise length or change overflow with weir "
                       "topic set",
                       refusals->topic,
                       refusal->code == WEIR_EFULL ? "refuses"
                                                   : "drops"); /* fits */
}

/* Whether the topic's max_body allows so much. */
static bool may_have(const struct weir__refusals *refusals, size_t len)
{
    int64_t most;

    return weir__size_parse(weir__slice_str(refusals->max_body), &most,
                            &(struct weir_error){0}) == WEIR_OK &&
           len <= (uint64_t)most;
}

static void write_sentence(const struct weir__refusals *refusals,
                           const struct weir__refusal *refusal,
                           char ret_text[SENTENCE_MAX])
{
    bool is_body = refusal->code == WEIR_ETOOBIG;
    const char *limit = is_body ? refusals->max_body : refusals->max_pending;
    char shown[40] = "";

    if (limit[0] != '\0')
        (void)snprintf(shown, sizeof(shown), " (%s)", limit); /* fits */
    if (is_body && may_have(refusals, refusal->body_len))
        (void)snprintf(ret_text, SENTENCE_MAX,
                       "body of %zu bytes is larger than the server takes; "
                       "raise its proto-max-bulk-len and "
                       "client-query-buffer-limit",
                       refusal->body_len); /* fits */
    else if (is_body)
        (void)snprintf(ret_text, SENTENCE_MAX,
                       "body of %zu bytes is larger than max_body of topic "
                       "\"%s\"%s; weir topic set raises it",
                       refusal->body_len, refusals->topic, shown); /* fits */
    else
        (void)snprintf(ret_text, SENTENCE_MAX,
                       "as many jobs wait in topic \"%s\" as its max_pending "
                       "allows%s; run a worker, or raise it with weir topic "
                       "set",
                       refusals->topic, shown); /* fits */
}

static void say(const struct weir__refusals *refusals,
                const struct weir__refusal *refusal)
{
    char text[SENTENCE_MAX];

    if (strcmp(refusals->client->kind, "bounded") == 0)
        write_bounded(refusals, refusal, text);
    else
        write_sentence(refusals, refusal, text);
    if (refusals->progress != NULL)
        weir__progress_clear(refusals->progress);
    if (refusal->line > 0)
        weir__complain("%s:%" PRIu64 ": %s", refusals->shown, refusal->line,
                       text);
    else
        weir__complain("%s", text);
}

static void say_all(struct weir__refusals *refusals)
{
    while (refusals->first != NULL) {
        struct weir__refusal *refusal = refusals->first;

        say(refusals, refusal);
        refusals->first = refusal->next;
        weir__mem_free(refusal);
    }
    refusals->end = &refusals->first;
}

/* --- asking ------------------------------------------------------------- */

static void keep(char to[32], const char *value)
{
    (void)snprintf(to, 32, "%s", value); /* cut */
}

static void on_setting(int code, const char *key, const char *value, void *arg)
{
    struct weir__refusals *refusals = arg;

    if (key == NULL) {
        say_all(refusals);
        refusals->done(code, refusals->arg);
    } else if (strcmp(key, "max_body") == 0) {
        keep(refusals->max_body, value);
    } else if (strcmp(key, "max_pending") == 0) {
        keep(refusals->max_pending, value);
    }
}

void weir__refusals_note(struct weir__refusals *refusals,
                         struct weir__refusal *refusal)
{
    bool is_first = refusals->first == NULL;

    refusal->next = NULL;
    *refusals->end = refusal;
    refusals->end = &refusal->next;
    if (!is_first)
        return; /* the limits are being read */
    keep(refusals->max_body, DEFAULT_MAX_BODY);
    refusals->max_pending[0] = '\0';
    if (weir_reactor_settings(refusals->client->reactor, refusals->topic,
                              on_setting, refusals) < 0)
        say_all(refusals);
}
