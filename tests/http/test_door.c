/* SPDX-License-Identifier: MIT */

/* Who is let in. */

#include "adapters/http/door.h"
#include "core/text.h"
#include "tests/harness/test.h"

#include <string.h>

#define TOKEN "0123456789abcdef"
#define VALUE                          \
    "feedbeeffeedbeeffeedbeeffeedbeef" \
    "feedbeeffeedbeeffeedbeeffeedbeef"

static struct weir__door guarded = {
    .token = TOKEN,
    .port = 8080,
    .sessions = {[3] = {.cookie = VALUE, .key = "facade"}}};
static struct weir__door local = {.port = 8080, .checks_host = true};

static unsigned int refusal(struct weir__door *door, struct weir__caller caller,
                            enum weir__http_access access)
{
    const char *why = "";
    unsigned int status;

    if (caller.host == NULL)
        caller.host = "localhost:8080";
    status = weir__door_refuses(door, &caller, access, &why);
    EXPECT_INT(status != 0, why[0] != '\0');
    return status;
}

TEST(with_a_token_nothing_is_read_without_it)
{
    EXPECT_INT(401,
               refusal(&guarded, (struct weir__caller){0}, WEIR__HTTP_READ));
    EXPECT_INT(401, refusal(&guarded,
                            (struct weir__caller){.authorization =
                                                      "Bearer " TOKEN "x"},
                            WEIR__HTTP_READ));
    EXPECT_INT(401, refusal(&guarded,
                            (struct weir__caller){.authorization =
                                                      "Bearer 0123456789abcde"},
                            WEIR__HTTP_READ));
    EXPECT_INT(401, refusal(&guarded,
                            (struct weir__caller){.authorization = "Bearer "},
                            WEIR__HTTP_READ));
    EXPECT_INT(0, refusal(&guarded, (struct weir__caller){0}, WEIR__HTTP_OPEN));
    EXPECT_INT(0,
               refusal(&guarded,
                       (struct weir__caller){.authorization = "bearer " TOKEN},
                       WEIR__HTTP_READ));
}

TEST(a_session_needs_its_cookie_and_its_key)
{
    struct weir__caller caller = {.cookie = "a=1; weir8080=" VALUE,
                                  .key = "facade"};

    EXPECT_INT(0, refusal(&guarded, caller, WEIR__HTTP_READ));
    caller.cookie = "weir8080=x; weir8080=; weir8080=" VALUE;
    EXPECT_INT(0, refusal(&guarded, caller, WEIR__HTTP_READ));
    caller.key = "facad";
    EXPECT_INT(401, refusal(&guarded, caller, WEIR__HTTP_READ));
    caller.key = "";
    EXPECT_INT(401, refusal(&guarded, caller, WEIR__HTTP_READ));
    caller.key = NULL;
    EXPECT_INT(401, refusal(&guarded, caller, WEIR__HTTP_READ));
    caller.key = "facade";
    caller.cookie = "weir8081=" VALUE;
    EXPECT_INT(401, refusal(&guarded, caller, WEIR__HTTP_READ));
    caller.cookie = "xweir8080=" VALUE "; weir8080=";
    EXPECT_INT(401, refusal(&guarded, caller, WEIR__HTTP_READ));
    caller.cookie = NULL;
    EXPECT_INT(401, refusal(&guarded, caller, WEIR__HTTP_READ));
}

TEST(over_tls_the_cookie_is_another)
{
    struct weir__caller caller = {
        .cookie = "weir8080=" VALUE, .key = "facade", .is_tls = true};

    EXPECT_INT(401, refusal(&guarded, caller, WEIR__HTTP_READ));
    caller.cookie = "__Host-weir8080=" VALUE;
    EXPECT_INT(0, refusal(&guarded, caller, WEIR__HTTP_READ));
    caller.is_tls = false;
    EXPECT_INT(401, refusal(&guarded, caller, WEIR__HTTP_READ));
}

TEST(a_session_ends_unused)
{
    struct weir__door door = guarded;
    struct weir__caller caller = {.cookie = "weir8080=" VALUE,
                                  .key = "facade",
                                  .now_s = WEIR__SESSION_IDLE_S - 1};

    EXPECT_INT(0, refusal(&door, caller, WEIR__HTTP_READ));
    caller.now_s += WEIR__SESSION_IDLE_S - 1;
    EXPECT_INT(0, refusal(&door, caller, WEIR__HTTP_READ));
    caller.now_s += WEIR__SESSION_IDLE_S - 1;
    caller.key = "x"; /* the cookie alone is no use of the session */
    EXPECT_INT(401, refusal(&door, caller, WEIR__HTTP_READ));
    caller.now_s += 1;
    caller.key = "facade";
    EXPECT_INT(401, refusal(&door, caller, WEIR__HTTP_READ));
    caller.now_s = 0;
    EXPECT_INT(401, refusal(&door, caller, WEIR__HTTP_READ)); /* for good */
}

TEST(the_session_that_was_used_least_recently_makes_room)
{
    struct weir__door door = {.token = TOKEN};
    struct weir__session *oldest = NULL, *session;

    for (int i = 0; i < WEIR__SESSIONS_MAX; i++) {
        session = weir__session_begin(door.sessions, i == 40 ? 1 : 2 + i);
        EXPECT_TRUE(session != NULL && session->cookie[63] != '\0' &&
                    strcmp(session->cookie, session->key) != 0);
        oldest = i == 40 ? session : oldest;
    }
    session = weir__session_begin(door.sessions, 100);
    EXPECT_TRUE(session == oldest);
    weir__session_end(session);
    EXPECT_TRUE(weir__session_find(door.sessions, weir__slice_str(""), 100) ==
                NULL);
    EXPECT_TRUE(weir__session_begin(door.sessions, 100) == session);
}

TEST(a_browser_acts_from_the_same_origin_only)
{
    struct weir__caller caller = {.cookie = "weir8080=" VALUE, .key = "facade"};

    EXPECT_INT(403, refusal(&guarded, caller, WEIR__HTTP_ACT));
    caller.origin = "http://localhost:8080";
    EXPECT_INT(0, refusal(&guarded, caller, WEIR__HTTP_ACT));
    caller.fetch_site = "same-origin";
    EXPECT_INT(0, refusal(&guarded, caller, WEIR__HTTP_ACT));
    caller.fetch_site = "same-site";
    EXPECT_INT(403, refusal(&guarded, caller, WEIR__HTTP_ACT));
    caller.fetch_site = NULL;
    caller.origin = "http://localhost:8081";
    EXPECT_INT(403, refusal(&guarded, caller, WEIR__HTTP_ACT));
    caller.origin = "null";
    EXPECT_INT(403, refusal(&guarded, caller, WEIR__HTTP_ACT));
}

TEST(a_program_acts_with_the_token)
{
    struct weir__caller caller = {.authorization = "Bearer " TOKEN};

    EXPECT_INT(0, refusal(&guarded, caller, WEIR__HTTP_ACT));
    caller.origin = "https://elsewhere.example";
    EXPECT_INT(403, refusal(&guarded, caller, WEIR__HTTP_ACT));
}

TEST(nobody_acts_where_nothing_may_be_changed)
{
    struct weir__door door = guarded;
    struct weir__caller caller = {.authorization = "Bearer " TOKEN};

    door.is_read_only = true;
    EXPECT_INT(403, refusal(&door, caller, WEIR__HTTP_ACT));
    EXPECT_INT(0, refusal(&door, caller, WEIR__HTTP_READ));
    EXPECT_INT(403, refusal(&local, (struct weir__caller){0}, WEIR__HTTP_ACT));
}

TEST(without_a_token_the_host_is_this_machine)
{
    struct weir__caller caller = {.host = "rebound.example:8080"};

    EXPECT_INT(0, refusal(&local, (struct weir__caller){0}, WEIR__HTTP_READ));
    EXPECT_INT(403, refusal(&local, caller, WEIR__HTTP_READ));
    EXPECT_INT(403, refusal(&local, caller, WEIR__HTTP_OPEN));
    EXPECT_INT(0, refusal(&guarded, caller, WEIR__HTTP_OPEN));
}

TEST(names_of_this_machine)
{
    static const char *const good[] = {"localhost", "LocalHost:1",
                                       "127.0.0.1", "127.9.8.7:80",
                                       "[::1]",     "[::1]:8080"};
    static const char *const bad[] = {"",
                                      "localhost.evil.example",
                                      "localhost:x",
                                      "127.0.0.1.nip",
                                      "127.0.0",
                                      "127.0.0.",
                                      "1127.0.0.1",
                                      "127..0.0.1",
                                      "127.0.0.1a",
                                      "[::1].x",
                                      "[::2]",
                                      "128.0.0.1"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        EXPECT_TRUE(weir__host_is_loopback(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT_TRUE(!weir__host_is_loopback(bad[i]));
}

TEST(a_token_is_a_word_of_some_length)
{
    struct weir_error err = {0};

    EXPECT_INT(WEIR_OK, weir__token_check(weir__slice_str(TOKEN), &err));
    EXPECT_INT(WEIR_EINVAL,
               weir__token_check(weir__slice_str("0123456789abcde"), &err));
    EXPECT_CONTAINS("16 to 256", err.text);
    EXPECT_INT(WEIR_EINVAL,
               weir__token_check(weir__slice_str("0123456789 abcdef"), &err));
    EXPECT_CONTAINS("one word", err.text);
}
