/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/peer.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "adapters/redis/script.h"
#include "tests/fuzz/fuzz.h"

void peer_open(struct peer *peer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *peer = (struct peer){0};
    (void)snprintf(address.sun_path, sizeof(address.sun_path),
                   "/tmp/weir-fuzz-%ld.sock", (long)getpid());
    (void)snprintf(peer->url, sizeof(peer->url), "unix://%.50s",
                   address.sun_path);
    (void)unlink(address.sun_path); /* of a process that crashed */
    peer->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    FUZZ_TRUE(peer->listener >= 0);
    FUZZ_TRUE(bind(peer->listener, (const struct sockaddr *)&address,
                   sizeof(address)) == 0);
    FUZZ_TRUE(listen(peer->listener, PEER_CLIENTS) == 0);
    FUZZ_TRUE(fcntl(peer->listener, F_SETFL, O_NONBLOCK) == 0);
    for (size_t i = 0; i < PEER_CLIENTS; i++)
        peer->clients[i].fd = -1;
}

static void hang_up(struct peer_client *client)
{
    (void)close(client->fd);
    weir__buf_fini(&client->in);
    *client = (struct peer_client){.fd = -1};
}

void peer_reset(struct peer *peer, struct weir_slice replies)
{
    for (size_t i = 0; i < PEER_CLIENTS; i++)
        if (peer->clients[i].fd >= 0)
            hang_up(&peer->clients[i]);
    peer->replies = replies;
    peer->time = replies.len % 8 < 4 ? replies.len % 4 : 0;
    peer->is_silent = false;
}

/* --- the input ---------------------------------------------------------- */

/* The number in a line that ends before `end`, and what follows the line. */
static const uint8_t *read_line(const uint8_t *at, const uint8_t *end,
                                long *ret_number)
{
    const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));

    *ret_number = 0;
    if (stop == NULL)
        return end;
    for (const uint8_t *digit = at; digit < stop && *ret_number < 100000;
         digit++)
        if (*digit >= '0' && *digit <= '9')
            *ret_number = *ret_number * 10 + *digit - '0';
    return stop + 1;
}

/* The next reply; where it is none, all that is left. */
static struct weir_slice take_reply(struct peer *peer)
{
    const uint8_t *start = peer->replies.ptr, *at = start;
    const uint8_t *end = start + peer->replies.len;
    long left = 1, number;

    for (; left > 0 && at < end; left--) {
        uint8_t type = *at;
        bool is_negative = at + 1 < end && at[1] == '-';

        at = read_line(at, end, &number);
        if (type == '*' && !is_negative)
            left += number;
        if (type == '$' && !is_negative)
            at = end - at < number + 2 ? end : at + number + 2;
    }
    peer->replies = weir__slice_of(at, (size_t)(end - at));
    return weir__slice_of(start, (size_t)(at - start));
}

/* --- answers ------------------------------------------------------------ */

static void say(const struct peer_client *client, struct weir_slice bytes)
{
    ssize_t sent = bytes.len == 0 ? 0
                                  : send(client->fd, bytes.ptr, bytes.len,
                                         MSG_NOSIGNAL | MSG_DONTWAIT);

    (void)sent; /* who hung up or does not read gets no answer */
}

static void confirm(const struct peer_client *client, struct weir_slice channel)
{
    char text[256];
    int len = snprintf(
        text, sizeof(text), "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%.*s\r\n:1\r\n",
        channel.len, (int)channel.len, (const char *)channel.ptr);

    FUZZ_TRUE(len > 0 && (size_t)len < sizeof(text));
    say(client, weir__slice_of(text, (size_t)len));
}
#define NO_DIGITS "\xff\xff\xff\xff\xff\xff"

/* A sound one, and some that no clock tells. */
static const char *const times[] = {
    "*2\r\n$10\r\n1767225600\r\n$6\r\n123456\r\n",
    "*2\r\n$19\r\n9223372036854775807\r\n$6\r\n999999\r\n",
    "*2\r\n$20\r\n-9223372036854775808\r\n$2\r\n-1\r\n",
    "*2\r\n$18\r\n" NO_DIGITS NO_DIGITS NO_DIGITS "\r\n$1\r\nx\r\n",
};

static void answer(struct peer *peer, const struct peer_client *client,
                   const struct weir_slice words[2])
{
    static const char *const known[][2] = {
        {"PING", "+PONG\r\n"}, {"CLIENT", "+OK\r\n"}, {"SCRIPT", "+OK\r\n"},
        {"SET", "+OK\r\n"},    {"SADD", ":1\r\n"},    {"INCR", ":7\r\n"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (weir__slice_equal(words[0], weir__slice_str(known[i][0]))) {
            say(client, weir__slice_str(known[i][1]));
            return;
        }
    if (weir__slice_equal(words[0], weir__slice_str("TIME"))) {
        say(client, weir__slice_str(times[peer->time]));
        return;
    }
    if (weir__slice_equal(words[0], weir__slice_str("SUBSCRIBE"))) {
        confirm(client, words[1]);
        return;
    }
    if (weir__slice_equal(words[1],
                          weir__slice_str(weir__script_delay_recall.sha1))) {
        say(client, weir__slice_str("*0\r\n")); /* once, of no interest */
        return;
    }
    peer->is_silent = peer->replies.len == 0;
    say(client, take_reply(peer));
}

/* Answer each command that has arrived whole; they are well-formed, they come
 * from weir. */
static void answer_all(struct peer *peer, struct peer_client *client)
{
    const uint8_t *at = client->in.ptr;
    const uint8_t *end = at + client->in.len;

    while (at < end) {
        const uint8_t *next = at;
        struct weir_slice words[2] = {{0}};
        long count, len;

        FUZZ_TRUE(*at == '*');
        next = read_line(at, end, &count);
        for (long i = 0; i < count && next < end; i++) {
            next = read_line(next, end, &len);
            if (i < 2)
                words[i] = weir__slice_of(next, (size_t)len);
            next = end - next < len + 2 ? NULL : next + len + 2;
            if (next == NULL)
                break;
        }
        if (next == NULL || (next == end && end[-1] != '\n'))
            break;
        answer(peer, client, words);
        at = next;
    }
    client->in.len = (size_t)(end - at);
    if (client->in.len > 0)
        memmove(client->in.ptr, at, client->in.len);
}

static bool read_client(struct peer *peer, struct peer_client *client)
{
    uint8_t bytes[65536];
    ssize_t len = recv(client->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (len < 0)
        return false;
    if (len == 0) {
        hang_up(client);
        return true;
    }
    weir__buf_append(&client->in, bytes, (size_t)len);
    FUZZ_TRUE(!client->in.failed);
    answer_all(peer, client);
    return true;
}

bool peer_turn(struct peer *peer)
{
    int fd = accept(peer->listener, NULL, NULL);
    bool has_done = fd >= 0;

    for (size_t i = 0; i < PEER_CLIENTS; i++) {
        struct peer_client *client = &peer->clients[i];

        if (client->fd < 0 && fd >= 0) {
            client->fd = fd;
            fd = -1;
        }
        if (client->fd >= 0 && read_client(peer, client))
            has_done = true;
    }
    if (fd >= 0)
        (void)close(fd); /* there are enough */
    return has_done;
}
