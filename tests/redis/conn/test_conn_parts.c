/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adapters/redis/conn/private.h"
#include "core/mem.h"
#include "core/random.h"
#include "tests/harness/test.h"

/* Instead of core/mem.c: the heap with a failure on demand. */
static long allocations_left = -1; /* negative: no limit */

static bool may_allocate(void)
{
    if (allocations_left < 0)
        return true;
    return allocations_left-- > 0;
}

void *weir__mem_new(size_t size)
{
    return may_allocate() ? calloc(1, size == 0 ? 1 : size) : NULL;
}

void *weir__mem_grow(void *ptr, size_t count, size_t size)
{
    return may_allocate() ? realloc(ptr, count * size) : NULL;
}

void weir__mem_free(void *ptr)
{
    free(ptr);
}

static int open_and_close(struct ev_loop *loop)
{
    const struct weir__redis_url url = {
        .is_unix = true, .host_count = 1, .hosts = {{"/no/such", 0}}};
    const struct weir__conn_options options = {
        .loop = loop, .url = &url, .name = "name", .channel = "channel"};
    struct weir__conn *conn = NULL;
    int rc = weir__conn_open(&options, &conn);

    EXPECT_INT(rc == WEIR_OK, conn != NULL);
    weir__conn_close(conn);
    return rc;
}

TEST(opening_survives_any_allocation_failure)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    int rc = WEIR_ENOMEM;
    int failures = -1;

    for (long n = 0; rc == WEIR_ENOMEM; n++, failures++) {
        allocations_left = n;
        rc = open_and_close(loop);
    }
    allocations_left = -1;
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_INT(1, failures); /* the connection, with all that it keeps */
    ev_loop_destroy(loop);
}

TEST(sending_survives_any_allocation_failure)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    const struct weir__redis_url url = {
        .is_unix = true, .host_count = 1, .hosts = {{"/no/such", 0}}};
    const struct weir__conn_options options = {.loop = loop, .url = &url};
    struct weir__conn *conn = NULL;
    int rc = WEIR_ENOMEM;

    EXPECT_INT(WEIR_OK, weir__conn_open(&options, &conn));
    for (long n = 0; rc == WEIR_ENOMEM; n++) {
        struct weir__buf bytes = {0};

        allocations_left = n;
        weir__buf_append(&bytes, "*1\r\n$4\r\nPING\r\n", 14);
        rc = weir__conn_send(conn, &bytes, NULL, 0, NULL, NULL);
        EXPECT_TRUE(bytes.ptr == NULL && !bytes.failed);
    }
    allocations_left = -1;
    EXPECT_INT(WEIR_OK, rc);
    weir__conn_close(conn);
    ev_loop_destroy(loop);
}

TEST(a_socket_connected_to_itself_is_recognised)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    EXPECT_INT(0, bind(fd, (struct sockaddr *)&address, len));
    EXPECT_INT(0, getsockname(fd, (struct sockaddr *)&address, &len));
    EXPECT_INT(0, connect(fd, (struct sockaddr *)&address, len));
    EXPECT_TRUE(weir__socket_is_own_peer(fd));
    (void)close(fd); /* the test is over */
}

TEST(a_pair_of_sockets_is_no_socket_connected_to_itself)
{
    int ends[2];

    EXPECT_INT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    EXPECT_TRUE(!weir__socket_is_own_peer(ends[0]));
    EXPECT_TRUE(!weir__socket_is_readable(ends[0]));
    EXPECT_INT(1, write(ends[1], "x", 1));
    EXPECT_TRUE(weir__socket_is_readable(ends[0]));
    weir__socket_prepare(ends[0], true);
    EXPECT_TRUE((fcntl(ends[0], F_GETFD) & FD_CLOEXEC) != 0);
    (void)close(ends[0]); /* the test is over */
    (void)close(ends[1]);
}

TEST(random_bits_follow_from_the_seed)
{
    uint64_t one = 7, same = 7, other = 8;

    for (int i = 0; i < 100; i++) {
        uint64_t bits = weir__random_next(&one);

        EXPECT_TRUE(bits == weir__random_next(&same));
        EXPECT_TRUE(bits != weir__random_next(&other));
    }
}
