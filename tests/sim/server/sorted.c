/* SPDX-License-Identifier: MIT */

/* Sorted sets. */

#include "tests/sim/server/private.h"

static size_t count_of(const struct object *object)
{
    return object == NULL ? 0 : object->table.count;
}

/* --- writing ------------------------------------------------------------- */

struct adding {
    bool nx, xx, gt, lt, ch;
};

/* Puts one pair; returns whether it is new, or was changed and that counts. */
static bool put(struct object *object, struct slice name, double score,
                const struct adding *adding)
{
    const struct entry *entry = table_find(&object->table, name);
    bool is_new = entry == NULL;

    if (is_new ? adding->xx
               : adding->nx || (adding->gt && score <= entry->score) ||
                     (adding->lt && score >= entry->score))
        return false;
    if (!is_new && entry->score == score)
        return false;
    sorted_put(object, name, score);
    return is_new || adding->ch;
}

static void run_zadd(struct call *call)
{
    struct adding adding = {0};
    struct object *object;
    int64_t count = 0;
    double score;
    size_t at = 2;

    for (; at < call->argc; at++) {
        if (is_word(call->argv[at], "NX"))
            adding.nx = true;
        else if (is_word(call->argv[at], "XX"))
            adding.xx = true;
        else if (is_word(call->argv[at], "GT"))
            adding.gt = true;
        else if (is_word(call->argv[at], "LT"))
            adding.lt = true;
        else if (is_word(call->argv[at], "CH"))
            adding.ch = true;
        else if (is_word(call->argv[at], "INCR"))
            unknown_option(call, at);
        else
            break;
    }
    if (at == call->argc || (call->argc - at) % 2 != 0) {
        answer_syntax(call);
        return;
    }
    for (size_t i = at; i < call->argc; i += 2)
        if (!read_score(call, i, &score))
            return;
    if (!(adding.xx ? find_object(call, 1, SORTED, &object)
                    : make_object(call, 1, SORTED, &object)))
        return;
    for (size_t i = at; object != NULL && i < call->argc; i += 2) {
        (void)read_score(call, i, &score); /* it is one */
        count += put(object, call->argv[i + 1], score, &adding);
    }
    answer_int(call, count);
}

static void run_zrem(struct call *call)
{
    struct object *object;
    int64_t count = 0;

    if (!find_object(call, 1, SORTED, &object))
        return;
    for (size_t i = 2; object != NULL && i < call->argc; i++) {
        struct entry *entry = table_find(&object->table, call->argv[i]);

        if (entry == NULL)
            continue;
        sorted_remove(object, entry);
        count++;
    }
    drop_if_empty(call, 1);
    answer_int(call, count);
}

void sorted_pop(struct call *call, bool is_max)
{
    struct object *object;
    int64_t count = 1;

    if (call->argc > 2 && (!parse_int(call->argv[2], &count) || count < 0)) {
        answer_error(call, "ERR value is out of range, must be positive");
        return;
    }
    if (!find_object(call, 1, SORTED, &object))
        return;
    if (count > (int64_t)count_of(object))
        count = (int64_t)count_of(object);
    answer_array(call, 2 * (size_t)count);
    for (; count > 0; count--) {
        struct entry *entry =
            object->sorted[is_max ? object->table.count - 1 : 0];

        answer_bulk(call, entry_name(entry));
        answer_score(call, entry->score);
        sorted_remove(object, entry);
    }
    drop_if_empty(call, 1);
}

static void run_zpopmin(struct call *call)
{
    sorted_pop(call, false);
}

static void run_zremrangebyrank(struct call *call)
{
    struct object *object;
    int64_t from, to;
    size_t first, count;

    if (!read_int(call, 2, &from) || !read_int(call, 3, &to) ||
        !find_object(call, 1, SORTED, &object))
        return;
    count = range_of(from, to, count_of(object), &first);
    for (size_t i = 0; i < count; i++)
        sorted_remove(object, object->sorted[first]);
    drop_if_empty(call, 1);
    answer_int(call, (int64_t)count);
}

/* --- reading ------------------------------------------------------------- */

static void run_zcard(struct call *call)
{
    struct object *object;

    if (find_object(call, 1, SORTED, &object))
        answer_int(call, (int64_t)count_of(object));
}

static void answer_score_of(struct call *call, const struct object *object,
                            struct slice name)
{
    const struct entry *entry =
        object == NULL ? NULL : table_find(&object->table, name);

    if (entry == NULL)
        answer_nil(call);
    else
        answer_score(call, entry->score);
}

static void run_zscore(struct call *call)
{
    struct object *object;

    if (find_object(call, 1, SORTED, &object))
        answer_score_of(call, object, call->argv[2]);
}

static void run_zmscore(struct call *call)
{
    struct object *object;

    if (!find_object(call, 1, SORTED, &object))
        return;
    answer_array(call, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        answer_score_of(call, object, call->argv[i]);
}

/* As run_hrandfield: with a count, neighbours from a place by chance. */
static void run_zrandmember(struct call *call)
{
    bool with_scores = call->argc == 4;
    struct object *object;
    int64_t count = 1;
    size_t most, first;

    if (with_scores && !is_word(call->argv[3], "WITHSCORES"))
        unknown_option(call, 3);
    if ((call->argc > 2 && !read_int(call, 2, &count)) ||
        !find_object(call, 1, SORTED, &object))
        return;
    most = count_of(object);
    if (call->argc == 2 && object == NULL) {
        answer_nil(call);
        return;
    }
    if (count < 0)
        unknown_option(call, 2);
    if ((size_t)count > most)
        count = (int64_t)most;
    if (call->argc > 2)
        answer_array(call, (size_t)count * (1 + with_scores));
    first = count == 0 ? 0 : server_below(call->server, most);
    for (size_t i = 0; i < (size_t)count; i++) {
        const struct entry *entry = object->sorted[(first + i) % most];

        answer_bulk(call, entry_name(entry));
        if (with_scores)
            answer_score(call, entry->score);
    }
}

/* The values of LIMIT and WITHSCORES. */
struct view {
    bool with_scores;
    int64_t skip, most; /* -1: all */
};

static bool read_view(struct call *call, size_t at, struct view *view)
{
    *view = (struct view){.most = -1};
    for (; at < call->argc; at++) {
        if (is_word(call->argv[at], "WITHSCORES")) {
            view->with_scores = true;
        } else if (is_word(call->argv[at], "LIMIT") && at + 2 < call->argc) {
            if (!read_int(call, at + 1, &view->skip) ||
                !read_int(call, at + 2, &view->most))
                return false;
            at += 2;
        } else {
            unknown_option(call, at);
        }
    }
    return true;
}

/* `count` entries from `first` on; backwards, down from the last of them. */
static void answer_entries(struct call *call, const struct object *object,
                           size_t first, size_t count, const struct view *view,
                           bool backwards)
{
    size_t skip = view->skip < 0 ? count : (size_t)view->skip;

    skip = skip < count ? skip : count;
    if (backwards)
        first += count - 1;
    first = backwards ? first - skip : first + skip;
    count -= skip;
    if (view->most >= 0 && (size_t)view->most < count)
        count = (size_t)view->most;
    answer_array(call, count * (1 + view->with_scores));
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry =
            object->sorted[backwards ? first - i : first + i];

        answer_bulk(call, entry_name(entry));
        if (view->with_scores)
            answer_score(call, entry->score);
    }
}

static void run_zrange(struct call *call)
{
    struct object *object;
    struct view view;
    int64_t from, to;
    size_t first, count;

    if (!read_view(call, 4, &view) || !read_int(call, 2, &from) ||
        !read_int(call, 3, &to) || !find_object(call, 1, SORTED, &object))
        return;
    count = range_of(from, to, count_of(object), &first);
    answer_entries(call, object, first, count, &view, false);
}

/* The entries between two bounds; false: replied. */
static bool find_between(struct call *call, size_t low, size_t high,
                         struct object **ret_object, size_t *ret_first,
                         size_t *ret_count)
{
    struct bound from, to;
    size_t end;

    if (!read_bound(call, low, &from) || !read_bound(call, high, &to) ||
        !find_object(call, 1, SORTED, ret_object))
        return false;
    *ret_first = *ret_count = 0;
    if (*ret_object == NULL)
        return true;
    *ret_first = sorted_rank(*ret_object, from, false);
    end = sorted_rank(*ret_object, to, true);
    *ret_count = end > *ret_first ? end - *ret_first : 0;
    return true;
}

static void run_zcount(struct call *call)
{
    struct object *object;
    size_t first, count;

    if (find_between(call, 2, 3, &object, &first, &count))
        answer_int(call, (int64_t)count);
}

static void run_zrangebyscore(struct call *call)
{
    struct object *object;
    struct view view;
    size_t first, count;

    if (read_view(call, 4, &view) &&
        find_between(call, 2, 3, &object, &first, &count))
        answer_entries(call, object, first, count, &view, false);
}

static void run_zrevrangebyscore(struct call *call)
{
    struct object *object;
    struct view view;
    size_t first, count;

    if (read_view(call, 4, &view) &&
        find_between(call, 3, 2, &object, &first, &count))
        answer_entries(call, object, first, count, &view, true);
}

const struct command sorted_commands[] = {
    {"ZADD", -4, run_zadd, WRITES | GROWS | ONE_KEY},
    {"ZREM", -3, run_zrem, WRITES | ONE_KEY},
    {"ZCARD", 2, run_zcard, ONE_KEY},
    {"ZCOUNT", 4, run_zcount, ONE_KEY},
    {"ZSCORE", 3, run_zscore, ONE_KEY},
    {"ZMSCORE", -3, run_zmscore, ONE_KEY},
    {"ZRANDMEMBER", -2, run_zrandmember, ONE_KEY},
    {"ZRANGE", -4, run_zrange, ONE_KEY},
    {"ZRANGEBYSCORE", -4, run_zrangebyscore, ONE_KEY},
    {"ZREVRANGEBYSCORE", -4, run_zrevrangebyscore, ONE_KEY},
    {"ZPOPMIN", -2, run_zpopmin, WRITES | ONE_KEY},
    {"ZREMRANGEBYRANK", 4, run_zremrangebyrank, WRITES | ONE_KEY},
    {0},
};
