/* SPDX-License-Identifier: MIT */
#include "adapters/weir/notices.h"

#include "adapters/weir/facade.h"
#include "core/assert.h"
#include "core/mem.h"

/* What hosts are told once. Room and verdicts are looked at each turn, while
 * somebody waits; adds are counted where the host said so. */

enum {
    ROOM_BYTES = 16 * 1024 * 1024, /* half of what fills a delay topic */
    BLOCK_COUNT = 127
};

struct weir__notice {
    struct weir__notice *next;
    const struct weir__store_topic *topic; /* whose room; NULL */
    weir_notice_fn fn;
    void *arg;
};

/* Adds between two calls of weir_reactor_when_added. */
struct weir__tally {
    struct weir__tally *next;
    struct weir__notices *notices;
    size_t open;       /* not answered yet */
    int code;          /* of the first that failed */
    weir_notice_fn fn; /* of who asked for its end */
    void *arg;
};

/* A job whose answer goes to the host and to the tally. */
struct weir__told {
    struct weir__told *next; /* while it is free */
    struct weir__tally *tally;
    weir_added_fn fn;
    void *arg;
};

/* As many are in use as jobs are not answered: blocks spare the heap. When none
 * is one block stays. */
struct weir__told_block {
    struct weir__told_block *next;
    struct weir__told told[BLOCK_COUNT];
};

/* --- lists ---------------------------------------------------------------- */

static void list_init(struct weir__notice_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static int list_add(struct weir__notice_list *list,
                    const struct weir__notice *from)
{
    struct weir__notice *notice = weir__mem_new(sizeof(*notice));

    WEIR_ASSERT(from->fn != NULL);
    if (notice == NULL)
        return WEIR_ENOMEM;
    *notice = *from;
    *list->end = notice;
    list->end = &notice->next;
    return WEIR_OK;
}

static void list_move(struct weir__notice_list *to,
                      struct weir__notice_list *from)
{
    if (from->first == NULL)
        return;
    *to->end = from->first;
    to->end = from->end;
    list_init(from);
}

/* Whoever is told may ask again: that comes behind. */
static void list_tell(struct weir__notice_list *list, int code)
{
    while (list->first != NULL) {
        struct weir__notice notice = *list->first;

        weir__mem_free(list->first);
        list->first = notice.next;
        if (list->first == NULL)
            list->end = &list->first;
        notice.fn(code, notice.arg);
    }
}

/* --- adds ----------------------------------------------------------------- */

static struct weir__tally *tally_new(struct weir__notices *notices)
{
    struct weir__tally *tally = weir__mem_new(sizeof(*tally));

    if (tally != NULL)
        tally->notices = notices;
    return tally;
}

struct weir__tally *weir__tally_join(struct weir_reactor *reactor)
{
    struct weir__tally *tally = reactor->notices.counting;

    if (tally != NULL)
        tally->open++;
    return tally;
}

void weir__tally_leave(struct weir__tally *tally, int code)
{
    if (tally == NULL)
        return;
    WEIR_ASSERT(tally->open > 0);
    tally->open--;
    if (tally->code == WEIR_OK && code != WEIR_EEXISTS)
        tally->code = code;
}

static void on_counted(int code, const char *id, void *arg)
{
    (void)id;
    weir__tally_leave(arg, code);
}

static void link_block(struct weir__notices *notices,
                       struct weir__told_block *block)
{
    for (size_t i = 0; i < BLOCK_COUNT; i++) {
        block->told[i].next = notices->free_told;
        notices->free_told = &block->told[i];
    }
}

static struct weir__told *told_take(struct weir__notices *notices)
{
    struct weir__told *told;

    if (notices->free_told == NULL) {
        struct weir__told_block *block = weir__mem_new(sizeof(*block));

        if (block == NULL)
            return NULL;
        block->next = notices->blocks;
        notices->blocks = block;
        link_block(notices, block);
    }
    told = notices->free_told;
    notices->free_told = told->next;
    notices->told_count++;
    return told;
}

/* Blocks from this one on. */
static void free_blocks(struct weir__told_block *block)
{
    while (block != NULL) {
        struct weir__told_block *next = block->next;

        weir__mem_free(block);
        block = next;
    }
}

static void told_put(struct weir__notices *notices, struct weir__told *told)
{
    WEIR_ASSERT(notices->told_count > 0);
    told->next = notices->free_told;
    notices->free_told = told;
    notices->told_count--;
    if (notices->told_count > 0 || notices->blocks->next == NULL)
        return;
    free_blocks(notices->blocks->next);
    notices->blocks->next = NULL;
    notices->free_told = NULL;
    link_block(notices, notices->blocks);
}

static void on_told(int code, const char *id, void *arg)
{
    struct weir__told told = *(struct weir__told *)arg;

    told_put(told.tally->notices, arg);
    weir__tally_leave(told.tally, code);
    told.fn(code, id, told.arg);
}

int weir__tally_put(struct weir_reactor *reactor,
                    struct weir__store_topic *handle,
                    const struct weir_new_job *job,
                    const struct weir_old_job *old, weir_added_fn fn, void *arg)
{
    struct weir__tally *tally = weir__tally_join(reactor);
    struct weir__told *told = NULL;
    int rc = WEIR_OK;

    if (tally == NULL)
        return weir__facade_put(reactor, handle, job, old, fn, arg);
    if (fn == NULL) {
        rc = weir__facade_put(reactor, handle, job, old, on_counted, tally);
    } else {
        told = told_take(&reactor->notices);
        rc = WEIR_ENOMEM;
        if (told != NULL) {
            *told = (struct weir__told){NULL, tally, fn, arg};
            rc = weir__facade_put(reactor, handle, job, old, on_told, told);
        }
    }
    if (rc == WEIR_OK)
        return WEIR_OK;
    if (told != NULL)
        told_put(&reactor->notices, told);
    weir__tally_leave(tally, WEIR_OK); /* it was not added */
    return rc;
}

static void tell_tally(struct weir__notices *notices, int code)
{
    struct weir__tally told = *notices->tally;

    weir__mem_free(notices->tally);
    notices->tally = told.next;
    told.fn(code == WEIR_OK ? told.code : code, told.arg);
}

/* --- asking --------------------------------------------------------------- */

static int check(const struct weir_reactor *reactor)
{
    int rc = weir__facade_check_thread(reactor, NULL);

    return rc == WEIR_OK && reactor->is_freed ? WEIR_ECANCELED : rc;
}

int weir_reactor_when_room(struct weir_reactor *reactor, const char *topic,
                           weir_notice_fn fn, void *arg)
{
    struct weir__notice notice = {.fn = fn, .arg = arg};
    struct weir__store_topic *handle;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);

    if (rc < 0)
        return rc;
    notice.topic = handle;
    return list_add(&reactor->notices.rooms, &notice);
}

int weir_reactor_count_added(struct weir_reactor *reactor)
{
    struct weir__notices *notices = &reactor->notices;
    int rc = check(reactor);

    if (rc < 0 || notices->counting != NULL)
        return rc;
    notices->counting = tally_new(notices);
    notices->tally = notices->counting;
    return notices->tally == NULL ? WEIR_ENOMEM : WEIR_OK;
}

int weir_reactor_when_added(struct weir_reactor *reactor, weir_notice_fn fn,
                            void *arg)
{
    struct weir__notices *notices = &reactor->notices;
    struct weir__tally *next;
    int rc = check(reactor);

    WEIR_ASSERT(fn != NULL);
    if (rc == WEIR_OK && notices->counting == NULL)
        rc = WEIR_EINVAL;
    if (rc < 0)
        return rc;
    next = tally_new(notices);
    if (next == NULL)
        return WEIR_ENOMEM;
    notices->counting->fn = fn;
    notices->counting->arg = arg;
    notices->counting->next = next;
    notices->counting = next;
    return WEIR_OK;
}

int weir_reactor_when_settled(struct weir_reactor *reactor, weir_notice_fn fn,
                              void *arg)
{
    const struct weir__notice notice = {.fn = fn, .arg = arg};
    int rc = check(reactor);

    return rc < 0 ? rc : list_add(&reactor->notices.marked, &notice);
}

/* --- telling -------------------------------------------------------------- */

static bool has_room(const struct weir_reactor *reactor,
                     const struct weir__notice *notice)
{
    return reactor->store->ops->waiting(notice->topic) <= ROOM_BYTES;
}

/* Those that found no room before one of them filled it again stay. */
static void tell_rooms(struct weir_reactor *reactor)
{
    struct weir__notice_list asked;

    list_init(&asked);
    list_move(&asked, &reactor->notices.rooms);
    while (asked.first != NULL && !reactor->is_freed) {
        struct weir__notice *notice = asked.first;
        struct weir__notice_list one = {notice, &notice->next};

        asked.first = notice->next;
        if (asked.first == NULL)
            asked.end = &asked.first;
        notice->next = NULL;
        if (has_room(reactor, notice))
            list_tell(&one, WEIR_OK);
        else
            list_move(&reactor->notices.rooms, &one);
    }
    list_move(&reactor->notices.rooms, &asked);
}

/* One round at a time: what was asked meanwhile is marked when it is over. */
static void tell_settled(struct weir_reactor *reactor)
{
    struct weir__notices *notices = &reactor->notices;
    struct weir__notice_list told;

    if (notices->settled.first != NULL &&
        weir__reactor_mark_is_settled(reactor->core)) {
        list_init(&told);
        list_move(&told, &notices->settled);
        list_tell(&told, WEIR_OK);
    }
    if (notices->settled.first == NULL && notices->marked.first != NULL) {
        weir__reactor_mark(reactor->core);
        list_move(&notices->settled, &notices->marked);
    }
}

void weir__notices_run(struct weir_reactor *reactor)
{
    struct weir__notices *notices = &reactor->notices;
    const struct weir__tally *last = notices->counting;

    while (notices->tally != last && notices->tally->open == 0 &&
           !reactor->is_freed)
        tell_tally(notices, WEIR_OK);
    if (notices->rooms.first != NULL)
        tell_rooms(reactor);
    if (notices->settled.first != NULL || notices->marked.first != NULL)
        tell_settled(reactor);
}

bool weir__notices_are_due(const struct weir_reactor *reactor)
{
    const struct weir__notices *notices = &reactor->notices;

    if (notices->tally != notices->counting && notices->tally->open == 0)
        return true;
    for (const struct weir__notice *notice = notices->rooms.first;
         notice != NULL; notice = notice->next)
        if (has_room(reactor, notice))
            return true;
    return notices->settled.first == NULL
               ? notices->marked.first != NULL
               : weir__reactor_mark_is_settled(reactor->core);
}

/* --- life ----------------------------------------------------------------- */

void weir__notices_init(struct weir__notices *notices)
{
    list_init(&notices->rooms);
    list_init(&notices->settled);
    list_init(&notices->marked);
}

void weir__notices_fini(struct weir__notices *notices)
{
    while (notices->tally != notices->counting)
        tell_tally(notices, WEIR_ECANCELED);
    list_tell(&notices->rooms, WEIR_ECANCELED);
    list_tell(&notices->settled, WEIR_ECANCELED);
    list_tell(&notices->marked, WEIR_ECANCELED);
    weir__mem_free(notices->tally);
    WEIR_ASSERT(notices->told_count == 0);
    free_blocks(notices->blocks);
}
