/* SPDX-License-Identifier: MIT */
#include "tests/redis/conn/conn_fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/resp.h"

enum { WORDS_MAX = 16 };

struct call {
    struct fixture *fixture;
    int id;
};

static struct fixture *all;

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop; /* it only ends a turn */
    (void)timer;
    (void)events;
}

static void on_log(enum weir_level level, const char *text, void *arg)
{
    struct fixture *fixture = arg;
    size_t used = strlen(fixture->log_text);

    fixture->warnings += level == WEIR_LEVEL_WARN ? 1 : 0;
    (void)snprintf(fixture->log_text + used, sizeof(fixture->log_text) - used,
                   "%s\n", text); /* cut */
}

static void on_state(int code, const char *text, void *arg)
{
    struct fixture *fixture = arg;

    if (code == WEIR_OK) {
        fixture->readies++;
    } else {
        fixture->losses++;
        fixture->lost_code = code;
        (void)snprintf(fixture->lost_text, sizeof(fixture->lost_text), "%s",
                       text); /* cut */
    }
    if (fixture->closes_on_state)
        fixture_close(fixture);
}

static void on_message(struct weir_slice payload, void *arg)
{
    struct fixture *fixture = arg;

    fixture->messages++;
    (void)snprintf(fixture->message, sizeof(fixture->message), "%.*s",
                   (int)payload.len, (const char *)payload.ptr); /* cut */
}

static void free_fixtures(void)
{
    while (all != NULL) {
        struct fixture *fixture = all;

        all = fixture->next;
        fixture_close(fixture);
        ev_timer_stop(fixture->loop, &fixture->tick);
        ev_loop_destroy(fixture->loop);
        free(fixture);
    }
}

struct fixture *fixture_new(const char *socket_path)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    EXPECT_TRUE(fixture != NULL);
    fixture->loop = ev_loop_new(EVFLAG_AUTO);
    fixture->url.is_unix = true;
    fixture->url.host_count = 1;
    (void)snprintf(fixture->url.hosts[0].name, WEIR__REDIS_TEXT_CAP, "%s",
                   socket_path); /* fits */
    fixture->log = (struct weir__log){.fn = on_log, .arg = fixture};
    fixture->options = (struct weir__conn_options){
        .loop = fixture->loop,
        .url = &fixture->url,
        .seed = 1,
        .log = &fixture->log,
        .on_state = on_state,
        .on_message = on_message,
        .arg = fixture,
    };
    ev_timer_init(&fixture->tick, on_tick, .005, .005);
    ev_timer_start(fixture->loop, &fixture->tick);
    fixture->next = all;
    all = fixture;
    test_at_end(free_fixtures);
    return fixture;
}

void fixture_open(struct fixture *fixture)
{
    EXPECT_INT(WEIR_OK, weir__conn_open(&fixture->options, &fixture->conn));
}

void fixture_close(struct fixture *fixture)
{
    struct weir__conn *conn = fixture->conn;

    fixture->conn = NULL;
    weir__conn_close(conn);
}

void fixture_turn(struct fixture *fixture)
{
    if (patience_ended(&fixture->patience)) {
        printf("  waited too long; log so far:\n%s", fixture->log_text);
        EXPECT_TRUE(false);
    }
    (void)ev_run(fixture->loop, EVRUN_ONCE); /* the tick keeps it alive */
}

void fixture_turns(struct fixture *fixture, int count)
{
    fixture->patience = patience_start(30.);
    while (count-- > 0)
        fixture_turn(fixture);
}

static void on_reply(int code, const struct redisReply *reply, void *arg)
{
    struct call *call = arg;
    struct fixture *fixture = call->fixture;
    struct fixture_reply *note = &fixture->reply[fixture->replies];
    int id = call->id;

    EXPECT_TRUE(fixture->replies < FIXTURE_REPLIES_MAX);
    free(call);
    EXPECT_INT(code == WEIR_OK || code == WEIR_ESERVER, reply != NULL);
    *note = (struct fixture_reply){.id = id, .code = code};
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
        (void)snprintf(note->text, sizeof(note->text), "%lld", reply->integer);
    else if (reply != NULL && reply->str != NULL)
        (void)snprintf(note->text, sizeof(note->text), "%s", reply->str);
    fixture->replies++;
    if (id == fixture->closes_on_id && id != 0)
        fixture_close(fixture);
}

static void send_bytes(struct fixture *fixture, struct weir__buf *bytes,
                       const struct weir__script *script, unsigned flags,
                       int id)
{
    struct call *call = calloc(1, sizeof(*call));

    EXPECT_TRUE(call != NULL);
    *call = (struct call){fixture, id};
    EXPECT_INT(WEIR_OK, weir__conn_send(fixture->conn, bytes, script, flags,
                                        on_reply, call));
    EXPECT_TRUE(bytes->ptr == NULL && bytes->len == 0);
}

void fixture_send(struct fixture *fixture, unsigned flags, int id, ...)
{
    struct weir__buf bytes = {0};
    const char *words[WORDS_MAX];
    size_t count = 0;
    va_list ap;

    va_start(ap, id);
    for (const char *word = va_arg(ap, const char *); word != NULL;
         word = va_arg(ap, const char *)) {
        EXPECT_TRUE(count < WORDS_MAX);
        words[count++] = word;
    }
    va_end(ap);
    weir__resp_command(&bytes, count);
    for (size_t i = 0; i < count; i++)
        weir__resp_str(&bytes, words[i]);
    send_bytes(fixture, &bytes, NULL, flags, id);
}

void fixture_send_script(struct fixture *fixture,
                         const struct weir__script *script, int id)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "EVALSHA");
    weir__resp_str(&bytes, script->sha1);
    weir__resp_int(&bytes, 0);
    send_bytes(fixture, &bytes, script, WEIR__SEND_ONCE, id);
}

void fixture_expect(const struct fixture *fixture, size_t index, int id,
                    int code, const char *text)
{
    EXPECT_TRUE(index < fixture->replies);
    EXPECT_INT(id, fixture->reply[index].id);
    EXPECT_INT(code, fixture->reply[index].code);
    EXPECT_STR(text, fixture->reply[index].text);
}

int fixture_retry_ms(const struct fixture *fixture)
{
    const char *last = NULL;

    for (const char *at = strstr(fixture->log_text, "retry in "); at != NULL;
         at = strstr(at + 1, "retry in "))
        last = at;
    if (last == NULL)
        return -1;
    return (int)strtol(last + strlen("retry in "), NULL, 10);
}
