/* SPDX-License-Identifier: MIT */

/* Prints each job as one JSON line, to stdout or to the end of a file:
 *
 *     {"topic":"t","id":"1","attempt":1,"late_ms":0.412,"body":{"n":1}}
 *
 * Lines are collected and handed to the operating system in `flush`, before
 * the turn's verdicts leave, and earlier when many have come together. When a
 * write fails, what was collected is dropped and the whole turn is reported as
 * failed: its jobs run again, so a line may come twice but is never missing. A
 * line that was cut by the failure is ended by a newline before the next one.
 * The lines are with the operating system then, not on a disk. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/plugin.h>

enum {
    BUF_FIRST_CAP = 4096,
    BUF_FULL = 256 * 1024,
    WAIT_MS = 1000, /* for a full pipe */
    SHORT_MS = 1000 /* until a job that lacked memory runs again */
};

struct echo {
    int fd;
    bool is_file;    /* fd is ours to close */
    bool is_cut;     /* the last byte written was inside a line */
    bool has_failed; /* at some write since the last flush */
    char *buf;
    size_t len;
    size_t cap;
};

static const struct weir_option options[] = {
    {
        .name = "file",
        .type = WEIR_OPTION_TEXT,
        .fallback = "",
        .help = "File that lines are appended to; stdout when empty.",
    },
};

/* Room for `len` more bytes. */
static bool reserve(struct echo *echo, size_t len)
{
    size_t cap = echo->cap == 0 ? BUF_FIRST_CAP : echo->cap;
    char *buf;

    if (echo->cap - echo->len >= len)
        return true;
    while (cap - echo->len < len) {
        if (cap > SIZE_MAX / 2)
            return false;
        cap *= 2;
    }
    buf = realloc(echo->buf, cap);
    if (buf == NULL)
        return false;
    echo->buf = buf;
    echo->cap = cap;
    return true;
}

static bool append(struct echo *echo, const char *bytes, size_t len)
{
    if (!reserve(echo, len))
        return false;
    memcpy(echo->buf + echo->len, bytes, len);
    echo->len += len;
    return true;
}

static bool append_text(struct echo *echo, const char *text)
{
    return append(echo, text, strlen(text));
}

/* Ids and topics are plain ASCII; where a host lets more pass, a terminal does
 * not hear of it. */
static bool append_string(struct echo *echo, struct weir_slice text)
{
    if (!reserve(echo, 6 * text.len + 3))
        return false;
    echo->buf[echo->len++] = '"';
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < ' ' || text.ptr[i] > '~') {
            echo->len += (size_t)snprintf(echo->buf + echo->len, 7, "\\u%04x",
                                          (unsigned)text.ptr[i]); /* fits */
            continue;
        }
        if (text.ptr[i] == '"' || text.ptr[i] == '\\')
            echo->buf[echo->len++] = '\\';
        echo->buf[echo->len++] = (char)text.ptr[i];
    }
    echo->buf[echo->len++] = '"';
    return true;
}

static bool append_numbers(struct echo *echo, const struct weir_job *job)
{
    int64_t late_us = weir_job_lateness_us(job);
    char text[96];
    int len = snprintf(
        text, sizeof(text),
        ",\"attempt\":%" PRIu32 ",\"late_ms\":%" PRId64 ".%03" PRId64,
        weir_job_counters(job).attempt, late_us / 1000, late_us % 1000);

    return append(echo, text, (size_t)len);
}

/* Of jobs of bounded topics alone. */
static bool append_group(struct echo *echo, struct weir_slice group)
{
    return group.len == 0 ||
           (append_text(echo, ",\"group\":") && append_string(echo, group));
}

static bool append_body(struct echo *echo, const struct weir_job *job)
{
    size_t room = echo->cap - echo->len;
    size_t len = weir_job_body_json(job, echo->buf + echo->len, room);

    if (len >= room) {
        if (!reserve(echo, len + 1))
            return false;
        len = weir_job_body_json(job, echo->buf + echo->len, len + 1);
    }
    echo->len += len;
    return len > 0;
}

static bool append_line(struct echo *echo, const struct weir_job *job)
{
    return append_text(echo, "{\"topic\":") &&
           append_string(echo, weir_job_topic(job)) &&
           append_text(echo, ",\"id\":") &&
           append_string(echo, weir_job_id(job)) && append_numbers(echo, job) &&
           append_group(echo, weir_job_group(job)) &&
           append_text(echo, ",\"body\":") && append_body(echo, job) &&
           append_text(echo, "}\n");
}

/* After a write that took nothing: is it worth another try? A full pipe that
 * does not block is waited for a little. */
static bool can_go_on(int fd, int code)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};

    if (code == EAGAIN)
        return poll(&ready, 1, WAIT_MS) != 0;
    return code == EINTR;
}

/* Write all of it; false when the operating system took only a part. */
static bool write_all(struct echo *echo, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t count = write(echo->fd, bytes, len);

        if (count > 0) {
            echo->is_cut = bytes[count - 1] != '\n';
            bytes += count;
            len -= (size_t)count;
        } else if (!can_go_on(echo->fd, count < 0 ? errno : ENOSPC)) {
            return false;
        }
    }
    return true;
}

static void write_out(struct echo *echo)
{
    if (echo->len == 0)
        return;
    if ((echo->is_cut && !write_all(echo, "\n", 1)) ||
        !write_all(echo, echo->buf, echo->len))
        echo->has_failed = true;
    echo->len = 0;
}

static int open_echo(const struct weir_open *open_with, void **ret_self)
{
    const char *file = open_with->values[0].text;
    struct echo *echo = calloc(1, sizeof(*echo));

    if (echo == NULL)
        return WEIR_ENOMEM;
    echo->fd = STDOUT_FILENO;
    echo->is_file = *file != '\0';
    if (echo->is_file)
        echo->fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (echo->fd < 0) {
        (void)snprintf(open_with->error, open_with->error_cap,
                       "cannot open %s: %s", file, strerror(errno)); /* cut */
        free(echo);
        return WEIR_ESYSTEM;
    }
    *ret_self = echo;
    return 0;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct echo *echo = self;
    size_t before = echo->len;

    if (!append_line(echo, job)) {
        echo->len = before; /* no half lines */
        return weir_snooze(job, SHORT_MS);
    }
    if (echo->len >= BUF_FULL)
        write_out(echo);
    return WEIR_DONE;
}

static int flush(void *self)
{
    struct echo *echo = self;
    bool has_failed;

    write_out(echo);
    has_failed = echo->has_failed;
    echo->has_failed = false;
    return has_failed ? WEIR_ESYSTEM : 0;
}

static void close_echo(void *self)
{
    struct echo *echo = self;

    if (echo->is_file)
        (void)close(echo->fd); /* what counts was written by flush */
    free(echo->buf);
    free(echo);
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "echo",
    .version = WEIR_VERSION,
    .summary = "Prints each job as one JSON line.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_echo,
    .run = run,
    .flush = flush,
    .close = close_echo,
};
