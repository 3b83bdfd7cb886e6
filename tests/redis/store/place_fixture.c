/* SPDX-License-Identifier: MIT */
#include "tests/redis/store/place_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/monotonic.h"
#include "adapters/redis/url.h"
#include "core/text.h"

enum { RULES_MAX = 30, TEXT_MAX = 160 };

struct weir__redis *store;
char place_log[8192], place_held[256], answers[4096];
int64_t place_ahead_ms;
struct patience place_patience;
int new_owner = 1;
int64_t place_wait_ms;

static struct ev_loop *loop;
static ev_timer tick;
static struct resp_peer *peers[NODES];
static struct resp_rule rules_of[NODES][RULES_MAX + 2];
static char waited_for;
static void (*at_waited)(void);

/* --- nodes ---------------------------------------------------------------- */

void nodes_prepare(void)
{
    for (int i = 0; i < NODES; i++)
        peers[i] = resp_peer_prepare();
}

int node_port(int node)
{
    return resp_peer_port(peers[node]);
}

void node_stop(int node)
{
    resp_peer_stop(peers[node]);
    peers[node] = NULL;
}

void node_pause(int node)
{
    resp_peer_pause(peers[node]);
}

static const char *error_of(const char *what, int node)
{
    static char texts[8 * NODES][TEXT_MAX];
    static int used;

    EXPECT_TRUE(used < 8 * NODES);
    (void)snprintf(texts[used], TEXT_MAX, "-%s %d 127.0.0.1:%d\r\n", what, SLOT,
                   node_port(node)); /* fits */
    return texts[used++];
}

const char *moved_to(int node)
{
    return error_of("MOVED", node);
}

const char *ask_to(int node)
{
    return error_of("ASK", node);
}

const char *slots_at(int node)
{
    static char texts[NODES][TEXT_MAX];
    const struct resp_range all = {0, 16383, "127.0.0.1", node_port(node)};

    resp_slots(&all, 1, texts[node], TEXT_MAX);
    return texts[node];
}

const char *slots_split(int last, int first, int rest)
{
    static char texts[NODES][2 * TEXT_MAX];
    const struct resp_range ranges[] = {
        {0, last, "127.0.0.1", node_port(first)},
        {last + 1, 16383, "127.0.0.1", node_port(rest)}};

    resp_slots(ranges, 2, texts[first], 2 * TEXT_MAX);
    return texts[first];
}

const char *info_of(char letter)
{
    static char texts[26][48];
    char *text = texts[letter - 'a'];

    (void)snprintf(text, 48, "$23\r\nrun_id:................\r\n"); /* fits */
    memset(strchr(text, '.'), letter, WEIR__IDENTITY_LEN);
    return text;
}

void node_run_as(int node, const struct resp_rule *rules, size_t count)
{
    resp_peer_run(peers[node], rules, count);
}

void node_run(int node, int owner, const struct resp_rule *rules, size_t count)
{
    struct resp_rule *all = rules_of[node];

    EXPECT_TRUE(count <= RULES_MAX);
    if (count > 0)
        memcpy(all, rules, count * sizeof(rules[0]));
    all[count] =
        (struct resp_rule){.words = "CLUSTER SLOTS", .bytes = slots_at(owner)};
    all[count + 1] = (struct resp_rule){.words = "SUBSCRIBE"}; /* no answer */
    node_run_as(node, all, count + 2);
}

/* --- the store ------------------------------------------------------------ */

static void on_tick(struct ev_loop *on, ev_timer *timer, int events)
{
    (void)on; /* it only ends a turn */
    (void)timer;
    (void)events;
}

static void on_log(enum weir_level level, const char *text, void *arg)
{
    size_t len = strlen(place_log);

    (void)level; /* everything is kept */
    (void)arg;
    (void)snprintf(place_log + len, sizeof(place_log) - len, "%s\n",
                   text); /* cut */
}

static void on_connection(int code, const char *text, void *arg)
{
    (void)code; /* servers are looked at */
    (void)text;
    (void)arg;
}

static void on_held(const char *text, void *arg)
{
    (void)arg;
    (void)snprintf(place_held, sizeof(place_held), "%s", text); /* cut */
}

static int64_t clock_ns(void *arg)
{
    (void)arg;
    return weir__monotonic_ns() + place_ahead_ms * 1000000;
}

void store_close(void)
{
    struct weir__redis *closed = store;

    if (store != NULL) {
        store = NULL;
        weir__redis_close(&closed->port);
    }
}

static void end(void)
{
    store_close();
    ev_timer_stop(loop, &tick);
    ev_loop_destroy(loop);
}

static void begin(void)
{
    if (loop != NULL)
        return;
    loop = ev_loop_new(EVFLAG_AUTO);
    EXPECT_TRUE(loop != NULL);
    ev_timer_init(&tick, on_tick, .005, .005);
    ev_timer_start(loop, &tick);
    test_at_end(end);
}

int store_try(int port, int64_t wait_ms)
{
    static const struct weir__store_events events = {
        .connection = on_connection, .held = on_held};
    static const struct weir__log log = {
        .fn = on_log, .arg = NULL, .level = WEIR_LEVEL_INFO};
    struct weir__redis_url url = {.host_count = 1};
    struct weir__redis_options options = {.url = &url,
                                          .worker = "w",
                                          .seed = 7,
                                          .wait_ms = wait_ms,
                                          .clock = clock_ns,
                                          .log = &log,
                                          .events = &events};
    struct weir__store *port_of;
    int rc;

    begin();
    options.loop = loop;
    (void)snprintf(url.hosts[0].name, sizeof(url.hosts[0].name),
                   "127.0.0.1"); /* fits */
    url.hosts[0].port = (uint16_t)port;
    (void)snprintf(url.prefix, sizeof(url.prefix), "weir"); /* fits */
    rc = weir__redis_open(&options, &port_of);
    if (rc == WEIR_OK)
        store = (struct weir__redis *)port_of; /* its first member */
    return rc;
}

void store_open_at(int port, int64_t wait_ms)
{
    EXPECT_INT(WEIR_OK, store_try(port, wait_ms));
}

void store_open(int node, int64_t wait_ms)
{
    store_open_at(node_port(node), wait_ms);
    AWAIT(store->servers->is_up);
    if (wait_ms > 0)
        EXPECT_INT(wait_ms, store->servers->commands->options.wait_ms);
}

void place_open(const struct resp_rule *rules, size_t count,
                const struct resp_rule *others, size_t other_count)
{
    static struct resp_rule all[16];

    all[0] = (struct resp_rule){
        .words = "CLUSTER SLOTS", .times = 1, .bytes = slots_at(0)};
    if (count > 0)
        memcpy(&all[1], rules, count * sizeof(rules[0]));
    node_run(0, new_owner, all, count + 1);
    node_run(1, new_owner, others, other_count);
    node_run(2, new_owner, NULL, 0);
    store_open(0, place_wait_ms);
}

void place_open_beside(const struct resp_rule *rules, size_t count, int until)
{
    static struct resp_rule all[16], others[1];

    nodes_prepare();
    all[0] = (struct resp_rule){.words = "CLUSTER SLOTS",
                                .bytes = slots_split(SLOT, 0, 1)};
    if (count > 0)
        memcpy(&all[1], rules, count * sizeof(rules[0]));
    others[0] = all[0];
    others[0].times = 2 + until;
    node_run(0, 1, all, count + 1);
    node_run(1, 1, others, 1);
    node_run(2, 1, NULL, 0);
    store_open(0, 0);
    say_at(weir__place_of_slot(store, OTHER_SLOT), "z", REPLAY);
    AWAIT(strlen(answers) == 1);
    AWAIT(heard(1, "CLUSTER SLOTS") == 2);
    answers[0] = '\0';
}

struct weir__place *place(void)
{
    struct weir__place *of_slot = weir__place_of_slot(store, SLOT);

    EXPECT_TRUE(of_slot != NULL);
    return of_slot;
}

void place_turn(void)
{
    if (patience_ended(&place_patience))
        printf("  answers: %s\n  log: %s\n", answers, place_log);
    EXPECT_TRUE(!patience_ended(&place_patience));
    (void)ev_run(loop, EVRUN_ONCE); /* the tick keeps it alive */
}

void place_pass(int ms)
{
    int64_t until = weir__monotonic_ms() + ms;

    AWAIT(weir__monotonic_ms() >= until);
}

/* --- commands ------------------------------------------------------------- */

struct saying {
    char letter;
};

void at_answer(char letter, void (*fn)(void))
{
    waited_for = letter;
    at_waited = fn;
}

static void on_answer(int code, const struct redisReply *reply, void *arg)
{
    struct saying *saying = arg;
    size_t len = strlen(answers);
    char letter = saying->letter;

    (void)reply; /* the code says enough */
    free(saying);
    EXPECT_TRUE(len + 3 < sizeof(answers));
    answers[len++] = letter;
    answers[len] = '\0';
    answers[len + 1] = '\0';
    if (code != WEIR_OK)
        answers[len] = code == WEIR_ECONN       ? '-'
                       : code == WEIR_EUNKNOWN  ? '?'
                       : code == WEIR_ESERVER   ? '!'
                       : code == WEIR_EFULL     ? '#'
                       : code == WEIR_ECANCELED ? '~'
                                                : '*';
    if (letter == waited_for) {
        waited_for = '\0';
        at_waited();
    }
}

static int send_one(struct weir__place *at, char letter,
                    const struct weir__script *script, size_t bytes,
                    unsigned flags)
{
    const char name[] = {letter, '\0'};
    struct saying *saying = calloc(1, sizeof(*saying));
    struct weir__buf buf = {0};
    int rc;

    EXPECT_TRUE(saying != NULL);
    saying->letter = letter;
    weir__resp_command(&buf,
                       2u + (script == NULL ? 0 : 1) + (bytes > 0 ? 1 : 0));
    if (script != NULL)
        weir__resp_str(&buf, "EVALSHA");
    weir__resp_str(&buf, "SAY");
    weir__resp_str(&buf, name);
    if (bytes > 0) {
        void *body = calloc(1, bytes);

        EXPECT_TRUE(body != NULL);
        weir__resp_bytes(&buf, weir__slice_of(body, bytes));
        free(body);
    }
    rc = weir__place_command(at, &buf, script, flags, on_answer, saying);
    if (rc != WEIR_OK)
        free(saying);
    return rc;
}

void say_at(struct weir__place *at, const char *letters, unsigned flags)
{
    for (; *letters != '\0'; letters++)
        EXPECT_INT(WEIR_OK, send_one(at, *letters, NULL, 0, flags));
    weir__place_flush(at);
}

void say(const char *letters, unsigned flags)
{
    say_at(place(), letters, flags);
}

void say_script(const char *letters, unsigned flags)
{
    for (; *letters != '\0'; letters++)
        EXPECT_INT(WEIR_OK, send_one(place(), *letters,
                                     &weir__script_delay_renew, 0, flags));
    weir__place_flush(place());
}

int say_long(struct weir__place *at, char letter, size_t bytes, unsigned flags)
{
    return send_one(at, letter, NULL, bytes, flags);
}

/* --- what peers heard ----------------------------------------------------- */

const char *said(int node)
{
    static char letters[NODES][1024];
    const char *at = resp_peer_heard(peers[node]);
    size_t len = 0;

    while ((at = strstr(at, "SAY ")) != NULL) {
        at += strlen("SAY ");
        EXPECT_TRUE(len + 1 < sizeof(letters[node]));
        letters[node][len++] = *at;
    }
    letters[node][len] = '\0';
    return letters[node];
}

int heard(int node, const char *words)
{
    const char *at = resp_peer_heard(peers[node]);
    int count = 0;

    for (; (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}
