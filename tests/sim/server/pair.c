/* SPDX-License-Identifier: MIT */
#include "tests/sim/server/pair.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "adapters/redis/resp.h"
#include "tests/harness/test.h"

struct pair pair;

static void take_ours(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    EXPECT_TRUE(pair.ours_len + len < sizeof(pair.ours));
    memcpy(pair.ours + pair.ours_len, bytes, len);
    pair.ours_len += len;
}

struct redis_proc *open_pair(const struct redis_options *options)
{
    struct redis_proc *redis = redis_start(options);
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
                   redis_socket(redis)); /* fits */
    pair.fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_INT(0, connect(pair.fd, (const struct sockaddr *)&address,
                          sizeof(address)));
    pair.server = server_new(INT64_C(1800000000000000), 1);
    pair.client = server_connect(pair.server, take_ours, NULL);
    return redis;
}

/* Reads one whole answer of the real server. */
static void read_real(void)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    pair.real_len = 0;
    while (reply == NULL) {
        static char part[64 * 1024];
        ssize_t got = read(pair.fd, part, sizeof(part));

        EXPECT_TRUE(got > 0);
        EXPECT_TRUE(pair.real_len + (size_t)got <= sizeof(pair.real));
        EXPECT_INT(REDIS_OK, redisReaderFeed(reader, part, (size_t)got));
        memcpy(pair.real + pair.real_len, part, (size_t)got);
        pair.real_len += (size_t)got;
        EXPECT_INT(REDIS_OK, redisReaderGetReply(reader, &reply));
    }
    freeReplyObject(reply);
    redisReaderFree(reader);
}

void ask_both(const struct weir__buf *bytes)
{
    if (!pair.is_alone) {
        EXPECT_INT((long)bytes->len, write(pair.fd, bytes->ptr, bytes->len));
        read_real();
    }
    pair.ours_len = 0;
    EXPECT_TRUE(server_feed(pair.client, (const char *)bytes->ptr, bytes->len));
    if (pair.ours_len == 0) /* it waits */
        server_set_time(pair.server, server_next_us(pair.server));
}

/* Where Redis promises no order, lines are compared without it. */
static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_lines(char *text, size_t len)
{
    char *lines[1024], *copy = strndup(text, len), *rest = NULL;
    size_t count = 0;

    for (char *line = strtok_r(copy, "\n", &rest);
         line != NULL && count < sizeof(lines) / sizeof(lines[0]);
         line = strtok_r(NULL, "\n", &rest))
        lines[count++] = line;
    qsort(lines, count, sizeof(lines[0]), compare_lines);
    for (size_t i = 0; i < count; i++) {
        memcpy(text, lines[i], strlen(lines[i]));
        text += strlen(lines[i]);
        *text++ = '\n';
    }
    free(copy);
}

void expect_same(const struct weir__buf *bytes, bool has_order)
{
    bool is_same;

    if (pair.is_alone)
        return;
    if (!has_order) {
        sort_lines(pair.real, pair.real_len);
        sort_lines(pair.ours, pair.ours_len);
    }
    is_same = pair.real_len == pair.ours_len &&
              memcmp(pair.real, pair.ours, pair.real_len) == 0;
    if (!is_same)
        printf("  asked: %.*s\n  redis: %.*s\n  ours:  %.*s\n", (int)bytes->len,
               (const char *)bytes->ptr, (int)pair.real_len, pair.real,
               (int)pair.ours_len, pair.ours);
    EXPECT_TRUE(is_same);
}

void expect_same_words(const char *const *words)
{
    struct weir__buf bytes = {0};

    weir__resp_words(&bytes, words);
    ask_both(&bytes);
    expect_same(&bytes, true);
    weir__buf_fini(&bytes);
}

const char *load(const char *text)
{
    static char sha[41];

    EXPECT_SAME("SCRIPT", "LOAD", text);
    EXPECT_INT(5 + 40 + 2, pair.ours_len);
    memcpy(sha, pair.ours + 5, 40);
    return sha;
}
