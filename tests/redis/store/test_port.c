/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/port.h"

#include <stdio.h>
#include <string.h>

#include "adapters/redis/monotonic.h"
#include "core/text.h"
#include "tests/harness/descriptors.h"
#include "tests/harness/oom.h"
#include "tests/redis/store/place_fixture.h"

/* A handler's commands, by the connections of the reactor's store or of a store
 * of their own. */

static struct weir__store *shared; /* what the reactor has */
static struct weir_redis *redis;
static struct weir_loop *share = (struct weir_loop *)&share; /* a name only */
static const struct weir_loop *volatile calling;
static int depth;
static char url[64];

/* What was told, one line each: the code and the text. */
static char told[1024];

static void on_told(int code, struct weir_slice text, void *arg)
{
    size_t len = strlen(told);

    EXPECT_TRUE(arg == told);
    EXPECT_TRUE(calling == share);
    EXPECT_TRUE(depth > 0);
    (void)snprintf(told + len, sizeof(told) - len, "%s %.*s\n",
                   weir_error_name(code), (int)text.len,
                   (const char *)text.ptr); /* cut */
}

static int64_t clock_ns(void *arg)
{
    (void)arg;
    return weir__monotonic_ns();
}

static int port_try(const char *at, int64_t wait_ms)
{
    static const struct weir__log log = {0};
    struct weir__redis_options own = {.worker = "w",
                                      .seed = 7,
                                      .wait_ms = wait_ms,
                                      .clock = clock_ns,
                                      .log = &log};
    struct weir__redis_port_options options = {
        .store = &shared,
        .url = at,
        .redis = &own,
        .depth = &depth,
        .calling = &calling,
        .share = share,
    };
    struct weir_error err;
    int rc;

    own.loop = options.loop = store->options.loop;
    shared = &store->port;
    rc = weir__redis_port_open(&options, &redis, &err);
    if (rc < 0)
        (void)snprintf(told, sizeof(told), "%s", err.text); /* cut */
    return rc;
}

static const char *url_of(int node)
{
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d",
                   node_port(node)); /* fits */
    return url;
}

static int ask_with(const char *const *texts, weir_redis_fn fn)
{
    struct weir_slice words[4];
    size_t count = 0;

    for (; texts[count] != NULL; count++)
        words[count] = weir__slice_str(texts[count]);
    return weir_redis_send(redis, words, count, fn, told);
}

#define ask(...) ask_with((const char *const[]){__VA_ARGS__, NULL}, on_told)

/* Node 0 with these rules has all slots; no command beside the port's. */
static void port_open(const struct resp_rule *rules, size_t count)
{
    nodes_prepare();
    node_run(0, 0, rules, count);
    store_open(0, 0);
    EXPECT_INT(WEIR_OK, port_try(NULL, 0));
}

/* At node 1, while the store is at node 0. */
static void port_open_own(const struct resp_rule *rules, size_t count,
                          int64_t wait_ms)
{
    nodes_prepare();
    node_run(0, 0, NULL, 0);
    node_run(1, 1, rules, count);
    store_open(0, 0);
    EXPECT_INT(WEIR_OK, port_try(url_of(1), wait_ms));
}

static bool has_told(const char *text)
{
    return strstr(told, text) != NULL;
}

/* --- answers -------------------------------------------------------------- */

TEST(answers_are_texts)
{
    static const struct resp_rule rules[] = {
        {.words = "TAKE int", .bytes = ":-42\r\n"},
        {.words = "TAKE bulk", .bytes = "$5\r\na\0b c\r\n"},
        {.words = "TAKE nil", .bytes = "$-1\r\n"},
        {.words = "TAKE all", .bytes = "*1\r\n$1\r\na\r\n"},
        {.words = "TAKE not", .bytes = "-WRONGTYPE of a key\r\n"}};

    port_open(rules, 5);
    EXPECT_INT(WEIR_OK, ask("TAKE", "int"));
    EXPECT_INT(WEIR_OK, ask("TAKE", "nil"));
    EXPECT_INT(WEIR_OK, ask("TAKE", "all"));
    EXPECT_INT(WEIR_OK, ask("TAKE", "not"));
    EXPECT_INT(WEIR_OK, ask("TAKE", "it", "so"));
    EXPECT_STR("", told); /* never inside the call */
    AWAIT(has_told(" OK"));
    EXPECT_STR("WEIR_OK -42\nWEIR_OK \nWEIR_OK \n"
               "WEIR_ESERVER WRONGTYPE of a key\nWEIR_OK OK\n",
               told);
    EXPECT_TRUE(calling == NULL);
    EXPECT_INT(0, depth);
    told[0] = '\0';
    EXPECT_INT(WEIR_OK, ask("TAKE", "more"));
    weir_redis_close(redis);
    EXPECT_STR("WEIR_ECANCELED \n", told);
}

TEST(commands_follow_the_slot_of_their_key)
{
    struct resp_rule rules[] = {{.words = "TAKE"}};

    nodes_prepare();
    rules[0].bytes = moved_to(1);
    node_run(0, 1, rules, 1);
    node_run(1, 1, NULL, 0);
    store_open(0, 0);
    EXPECT_INT(WEIR_OK, port_try(NULL, 0));
    EXPECT_INT(WEIR_OK, ask("TAKE", "a", "1"));
    EXPECT_INT(WEIR_OK, ask("TAKE", "a", "2"));
    AWAIT(has_told("OK OK\nWEIR_OK OK\n"));
    EXPECT_INT(1, heard(1, "TAKE a 1"));
    EXPECT_INT(1, heard(1, "TAKE a 2"));
    weir_redis_close(redis);
}

/* --- refusals ------------------------------------------------------------- */

TEST(a_command_has_a_name_and_a_key)
{
    port_open(NULL, 0);
    EXPECT_INT(WEIR_EINVAL, ask("PING"));
    weir_redis_close(redis);
}

TEST(who_has_too_much_on_its_way_is_full)
{
    static char body[8 * 1024 * 1024 + 1];
    int sent = 0, rc;

    port_open(NULL, 0);
    node_pause(0);
    memset(body, 'x', sizeof(body) - 1);
    do
        rc = ask("TAKE", "a", body);
    while (rc == WEIR_OK && ++sent < 100);
    EXPECT_INT(WEIR_EFULL, rc);
    EXPECT_TRUE(sent >= 7);
    weir_redis_close(redis);
}

TEST(where_the_reactor_went_nothing_is_sent)
{
    port_open(NULL, 0);
    shared = NULL;
    EXPECT_INT(WEIR_ECANCELED, ask("TAKE", "a"));
    weir_redis_close(redis);
}

TEST(what_is_no_address_is_refused)
{
    port_open(NULL, 0);
    weir_redis_close(redis);
    EXPECT_INT(WEIR_EINVAL, port_try("redis:x", 0));
    EXPECT_CONTAINS("address", told);
}

/* --- connections ---------------------------------------------------------- */

TEST(a_server_of_its_own_hears_of_nothing_else)
{
    static const struct resp_rule rules[] = {
        {.words = "TAKE", .bytes = ":1\r\n"}};

    port_open_own(rules, 1, 0);
    EXPECT_INT(WEIR_OK, ask("TAKE", "a"));
    AWAIT(has_told("OK 1\n"));
    EXPECT_INT(0, heard(1, "SUBSCRIBE"));
    EXPECT_INT(1, heard(1, "SETNAME"));
    EXPECT_INT(0, heard(0, "TAKE"));
    weir_redis_close(redis);
}

TEST(a_command_that_was_not_sent_says_so)
{
    port_open_own(NULL, 0, 500);
    weir_redis_close(redis);
    node_stop(1);
    EXPECT_INT(WEIR_OK, port_try(url, 500));
    EXPECT_INT(WEIR_OK, ask("TAKE", "a"));
    AWAIT(told[0] != '\0');
    EXPECT_STR("WEIR_ECONN \n", told);
    weir_redis_close(redis);
}

TEST(a_command_that_found_no_descriptor_says_so)
{
    struct descriptors all;

    port_open_own(NULL, 0, 500);
    weir_redis_close(redis);
    descriptors_take(&all);
    EXPECT_INT(WEIR_OK, port_try(url, 500));
    EXPECT_INT(WEIR_OK, ask("TAKE", "a"));
    AWAIT(told[0] != '\0');
    descriptors_give_back(&all);
    EXPECT_STR("WEIR_ENOMEM \n", told);
    weir_redis_close(redis);
}

TEST(a_command_whose_answer_was_lost_says_so_and_is_sent_once)
{
    static const struct resp_rule rules[] = {
        {.words = "TAKE", .hangs_up = true}};

    port_open_own(rules, 1, 0);
    EXPECT_INT(WEIR_OK, ask("TAKE", "a"));
    AWAIT(told[0] != '\0');
    EXPECT_STR("WEIR_EUNKNOWN \n", told);
    EXPECT_INT(1, heard(1, "TAKE"));
    weir_redis_close(redis);
}

/* --- closing -------------------------------------------------------------- */

static void on_told_close(int code, struct weir_slice text, void *arg)
{
    on_told(code, text, arg);
    if (code == WEIR_OK)
        weir_redis_close(redis);
    else
        EXPECT_INT(WEIR_ECANCELED, ask("TAKE", "c"));
}

TEST(what_has_no_answer_at_the_closing_is_told_so_also_inside_a_callback)
{
    static const char *const first[] = {"TAKE", "a", NULL};
    static const char *const second[] = {"TAKE", "b", NULL};

    port_open(NULL, 0);
    EXPECT_INT(WEIR_OK, ask_with(first, on_told_close));
    EXPECT_INT(WEIR_OK, ask_with(second, on_told_close));
    EXPECT_INT(WEIR_OK, ask("TAKE", "d"));
    AWAIT(told[0] != '\0');
    EXPECT_STR("WEIR_OK OK\nWEIR_ECANCELED \nWEIR_ECANCELED \n", told);
    say("z", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 1); /* behind those that are told nobody */
    EXPECT_INT(0, depth);
}

TEST(a_connection_of_its_own_goes_while_others_call)
{
    port_open_own(NULL, 0, 0);
    EXPECT_INT(WEIR_OK, ask("TAKE", "a"));
    EXPECT_INT(WEIR_OK, ask("TAKE", "b"));
    depth++;
    weir_redis_close(redis);
    depth--;
    EXPECT_STR("WEIR_ECANCELED \nWEIR_ECANCELED \n", told);
}

TEST(the_store_may_go_before_what_uses_it)
{
    port_open(NULL, 0);
    EXPECT_INT(WEIR_OK, ask("TAKE", "a"));
    store_close();
    shared = NULL;
    EXPECT_STR("WEIR_ECANCELED \n", told);
    weir_redis_close(redis);
}

/* --- memory --------------------------------------------------------------- */

TEST(opening_survives_any_allocation_failure)
{
    int rc = WEIR_ENOMEM;

    port_open_own(NULL, 0, 0);
    for (int nth = 0; rc == WEIR_ENOMEM; nth++) {
        weir_redis_close(redis);
        redis = NULL;
        oom_once_after(nth);
        rc = port_try(url_of(1), 0);
        oom_off();
    }
    EXPECT_INT(WEIR_OK, rc);
    weir_redis_close(redis);
}

TEST(sending_survives_any_allocation_failure)
{
    int rc = WEIR_ENOMEM, failed = -1;

    port_open(NULL, 0);
    for (int nth = 0; rc == WEIR_ENOMEM; nth++) {
        oom_once_after(nth);
        rc = ask("TAKE", "a");
        oom_off();
        failed++;
    }
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(failed > 1);
    AWAIT(told[0] != '\0');
    EXPECT_STR("WEIR_OK OK\n", told);
    weir_redis_close(redis);
}
