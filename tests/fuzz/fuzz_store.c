/* SPDX-License-Identifier: MIT */

/* Any replies to the stores: whatever a server answers to claim, fetch, settle,
 * show, list and the others, the store lives on and gives back what it was
 * given. The first two bytes say what is asked of which kind of topic, the
 * others are the replies. */

#include <ev.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adapters/redis/store/kind.h"
#include "core/mem.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/peer.h"

enum { TURNS = 200, QUIET_TURNS = 4, ROOM = 100 };

/* What is asked: bits of the first two bytes. */
enum {
    ADD = 1,
    SHOW = 2,
    REMOVE = 4,
    LIST = 8,
    DEAD = 16,
    STATS = 32,
    REQUEUE = 64,
    PURGE = 128,
    SETTINGS = 256,
    TOPICS = 512,
    PAUSE = 1024,
    RESCHEDULE = 2048,
    KIND_SHIFT = 12 /* the rest: which kind of topic */
};

enum { BOUNDED = 3, SYNC = 4, KINDS = 6 };

struct world {
    struct ev_loop *loop;
    struct weir__store *store;
    struct weir__options options;
    struct weir__store_topic *topic;
    const char *group;
    struct weir__run *runs; /* arrived and not settled */
    size_t seen, asked, answered;
};

/* --- events ------------------------------------------------------------- */

static void on_claimed(void *user, const struct weir__claimed *claimed)
{
    (void)user;
    FUZZ_TRUE(claimed->code == WEIR_OK || claimed->count == 0);
    FUZZ_TRUE(claimed->count <= ROOM);
    FUZZ_TRUE(!claimed->is_paused || claimed->count == 0);
}

static void on_arrived(void *user, struct weir__run *first, size_t count,
                       size_t lost)
{
    struct world *world = user;
    struct weir__run *last = first;

    (void)lost;
    FUZZ_TRUE((first == NULL) == (count == 0));
    for (; last != NULL && last->next != NULL; last = last->next)
        count--;
    FUZZ_TRUE(first == NULL || count == 1);
    if (last != NULL) {
        last->next = world->runs;
        world->runs = first;
    }
}

static void on_settled(void *user, size_t count, size_t refused)
{
    (void)user;
    FUZZ_TRUE(refused <= count);
}

static void on_wake(void *user)
{
    (void)user;
}

static void on_started(void *user, struct weir__run *run, int code)
{
    struct world *world = user;

    (void)code;
    run->is_suspect = false;
    run->next = world->runs;
    world->runs = run;
}

static void on_lost(void *user, uint64_t token)
{
    (void)user;
    (void)token;
}

static void on_options(void *user, const struct weir__setting *settings,
                       size_t count)
{
    (void)user;
    for (size_t i = 0; i < count; i++)
        FUZZ_TRUE(settings[i].value.ptr[settings[i].value.len] == '\0');
}

static void on_dropped(const struct weir__dropped *dropped, void *arg)
{
    (void)arg;
    FUZZ_TRUE(dropped->group.len <= WEIR_MAX_ID && dropped->count > 0);
}

static void on_connection(int code, const char *text, void *arg)
{
    (void)code;
    (void)arg;
    FUZZ_TRUE(text != NULL); /* a server may refuse without a word */
}

static void on_log(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    FUZZ_TRUE(strlen(text) > 0);
}

static int64_t clock_ns(void *arg)
{
    struct timespec now = {0};

    (void)arg;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- requests ----------------------------------------------------------- */

static void on_added(int code, const char *id, void *arg)
{
    (void)code;
    FUZZ_TRUE(id[0] == '\0' || weir__id_is_sound(weir__slice_str(id)));
    ((struct world *)arg)->answered++;
}

/* One call for each job, then one with `job` NULL; show has only one. */
static void on_job(int code, const struct weir_job_info *job, void *arg)
{
    (void)arg;
    FUZZ_TRUE(job == NULL || (code == WEIR_OK && weir__id_is_sound(job->id)));
    FUZZ_TRUE(job == NULL || job->group.len == 0 ||
              weir__group_is_sound(job->group));
}

static void on_was(int code, enum weir_job_state was, void *arg)
{
    FUZZ_TRUE(code != WEIR_OK || (int)was <= WEIR_JOB_DEAD);
    ((struct world *)arg)->answered++;
}

static void on_rescheduled(int code, enum weir_job_state was, int64_t due_ms,
                           void *arg)
{
    (void)due_ms;
    on_was(code, was, arg);
}

static void on_code(int code, const char *text, void *arg)
{
    (void)code;
    (void)text;
    ((struct world *)arg)->answered++;
}

static void on_count(int code, uint64_t count, void *arg)
{
    (void)count;
    on_code(code, NULL, arg);
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    FUZZ_TRUE((code == WEIR_OK) == (stats != NULL));
    on_code(code, NULL, arg);
}

static void on_setting(int code, const char *name, const char *value, void *arg)
{
    (void)code;
    (void)arg;
    FUZZ_TRUE(name == NULL || value != NULL);
}

static void on_topic(int code, const char *topic, void *arg)
{
    (void)code;
    (void)arg;
    FUZZ_TRUE(topic == NULL || strlen(topic) <= WEIR_MAX_TOPIC);
}

static void on_worker(int code, const struct weir_worker *worker, void *arg)
{
    (void)code;
    (void)arg;
    FUZZ_TRUE(worker == NULL || worker->topic_count <= WEIR_WORKER_TOPICS);
    FUZZ_TRUE(worker == NULL || worker->topic_count <= worker->topics_total);
}

static void note(struct world *world, int code)
{
    FUZZ_TRUE(code <= WEIR_OK);
    world->asked += code == WEIR_OK;
}

static void add(struct world *world)
{
    static const uint8_t seven[] = {7};
    struct weir__record record = {.body = {seven, 1}};
    struct weir__new_job job = {.id = weir__slice_str("a"),
                                .record = &record,
                                .group = weir__slice_str(world->group)};

    note(world, world->store->ops->add(world->topic, &job, on_added, world));
    job.id = weir__slice_str("");
    note(world, world->store->ops->add(world->topic, &job, on_added, world));
}

static void ask_counted(struct world *world, unsigned what)
{
    const struct weir__store_ops *ops = world->store->ops;
    struct weir__store_topic *topic = world->topic;
    struct weir__reschedule due = {weir__slice_str("a"), 5, 0};

    if ((what & ADD) != 0)
        add(world);
    if ((what & REMOVE) != 0)
        note(world, ops->remove(topic, due.id, on_was, world));
    if ((what & STATS) != 0)
        note(world, ops->stats(topic, on_stats, world));
    if ((what & REQUEUE) != 0)
        note(world, ops->requeue(topic, weir__slice_str(""), on_count, world));
    if ((what & PURGE) != 0)
        note(world, ops->purge(topic, WEIR__PURGE_ALL, on_count, world));
    if ((what & PAUSE) != 0)
        note(world, ops->pause(topic, true, on_code, world));
    if ((what & RESCHEDULE) != 0)
        note(world, ops->reschedule(topic, &due, on_rescheduled, world));
}

static void ask_lists(const struct world *world, unsigned what)
{
    const struct weir__store_ops *ops = world->store->ops;
    struct weir__store_topic *topic = world->topic;
    struct weir_slice id = weir__slice_str("a");
    const struct weir__list ready = {.state = WEIR_JOB_READY, .limit = 10};
    const struct weir__list dead = {.state = WEIR_JOB_DEAD, .limit = 10};

    if ((what & SHOW) != 0)
        FUZZ_TRUE(ops->show(topic, id, on_job, NULL) <= WEIR_OK);
    if ((what & LIST) != 0)
        FUZZ_TRUE(ops->list(topic, &ready, on_job, NULL) <= WEIR_OK);
    if ((what & DEAD) != 0)
        FUZZ_TRUE(ops->list(topic, &dead, on_job, NULL) <= WEIR_OK);
    if ((what & SETTINGS) != 0)
        FUZZ_TRUE(ops->settings(topic, on_setting, NULL) <= WEIR_OK);
    if ((what & TOPICS) != 0) {
        FUZZ_TRUE(ops->topics(world->store, on_topic, NULL) <= WEIR_OK);
        FUZZ_TRUE(ops->workers(world->store, on_worker, NULL) <= WEIR_OK);
    }
}

/* --- the turn ----------------------------------------------------------- */

/* Every outcome in turn; a suspect is started first. */
static void settle_all(struct world *world)
{
    static const enum weir__outcome outcomes[] = {
        WEIR__OUTCOME_DONE, WEIR__OUTCOME_RETRY,  WEIR__OUTCOME_SNOOZE,
        WEIR__OUTCOME_DEAD, WEIR__OUTCOME_RETURN,
    };
    const struct weir__store_ops *ops = world->store->ops;

    while (world->runs != NULL) {
        struct weir__run *run = world->runs;

        world->runs = run->next;
        run->next = NULL;
        FUZZ_TRUE(weir__id_is_sound(run->id) && run->due_ms >= 0);
        FUZZ_TRUE(run->group.len == 0 || weir__group_is_sound(run->group));
        if (run->is_suspect && !run->is_malformed && ops->start != NULL) {
            ops->start(world->topic, run);
            continue;
        }
        run->delay_ms = 10;
        run->outcome = outcomes[world->seen++ % 5];
        if (run->is_malformed)
            run->outcome = WEIR__OUTCOME_DEAD;
        if (run->outcome == WEIR__OUTCOME_DEAD)
            run->record.reason = weir__slice_str("failed");
        ops->settle(world->topic, run);
    }
}

static void work(struct world *world, struct peer *peer, unsigned what)
{
    const struct weir__store_ops *ops = world->store->ops;
    struct weir__claim claim = {
        .room = ROOM, .lease_ms = 5000, .now_ns = clock_ns(NULL)};
    int quiet = 0;

    FUZZ_TRUE(ops->claim(world->topic, &claim) <= WEIR_OK);
    ask_counted(world, what);
    ask_lists(world, what);
    for (int i = 0; i < TURNS && quiet < QUIET_TURNS && !peer->is_silent; i++) {
        settle_all(world);
        ops->flush(world->store);
        (void)ev_run(world->loop, EVRUN_NOWAIT); /* whatever is active */
        quiet = peer_turn(peer) ? 0 : quiet + 1;
    }
}

static int open_store(struct world *world, const char *address, unsigned kind)
{
    static const char *const kinds[] = {"delay",   "list", "stream",
                                        "bounded", "sync", "concurrent"};
    static const char *const said[] = {
        "max_dead=5", "delay=5ms", "lease=300ms", "consumers=2",
        "length=10",  "batch=5",   NULL};
    static const struct weir__store_events events = {
        .claimed = on_claimed,
        .arrived = on_arrived,
        .settled = on_settled,
        .wake = on_wake,
        .started = on_started,
        .lost = on_lost,
        .options = on_options,
        .connection = on_connection,
        .dropped = on_dropped,
    };
    static const struct weir__log log = {
        .fn = on_log, .arg = NULL, .level = WEIR_LEVEL_DEBUG};
    struct weir__store_topic_options topic = {
        .name = weir__slice_str("t"),
        .kind = kinds[kind % KINDS],
        .served = &world->options,
    };
    struct weir__redis_url url;
    struct weir__redis_options options = {
        .loop = world->loop,
        .url = &url,
        .worker = "w",
        .seed = 7,
        .clock = clock_ns,
        .log = &log,
        .events = &events,
    };

    world->options = weir__options_default;
    FUZZ_TRUE(weir__options_read(&world->options, "t", said, NULL) == WEIR_OK);
    FUZZ_TRUE(weir__redis_url_parse(address, &url, NULL) == WEIR_OK);
    FUZZ_TRUE(weir__redis_open(&options, &world->store) == WEIR_OK);
    return world->store->ops->topic_open(world->store, &topic, &world->topic);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct peer peer; /* its socket lasts as long as the process */
    struct world world = {.loop = ev_loop_new(EVFLAG_AUTO)};

    if (size >= 2) {
        unsigned what = data[0] | (unsigned)data[1] << 8;

        if (peer.listener == 0)
            peer_open(&peer);
        peer_reset(&peer, weir__slice_of(data + 2, size - 2));
        world.group = (what >> KIND_SHIFT) % KINDS == BOUNDED ? "g" : "";
        FUZZ_TRUE(open_store(&world, peer.url, what >> KIND_SHIFT) == WEIR_OK);
        world.store->ops->topic_listen(world.topic, &world);
        work(&world, &peer, what);
        world.store->ops->close(world.store);
        FUZZ_TRUE(world.answered == world.asked);
        peer_reset(&peer, weir__slice_of(NULL, 0));
    }
    ev_loop_destroy(world.loop);
    return 0;
}
