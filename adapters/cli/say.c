/* SPDX-License-Identifier: MIT */

/* Talk: sentences and log lines, all of it to stderr, a line in one write:
 * threads may log at once. Nothing here needs the heap or a lock, so that a
 * handler of signals may talk as well.
 *
 * A process that has leases or connections must not wait for a reader of its
 * log. There a line waits for 100 ms, and is dropped; the lines behind it do
 * not wait, until one is written again. */

#include "adapters/cli/cli.h"
#include "adapters/cli/time.h"
#include "core/text.h"
#include "core/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct {
    const char *name, *colour;
    char priority; /* of the journal: sd-daemon(3) */
} levels[] = {
    [WEIR_LEVEL_DEBUG] = {"debug", "\033[2m", '7'},
    [WEIR_LEVEL_INFO] = {"info", "\033[36m", '6'},
    [WEIR_LEVEL_WARN] = {"warn", "\033[33m", '4'},
    [WEIR_LEVEL_ERROR] = {"error", "\033[31m", '3'},
};

static enum weir__log_format line_format;
static bool sentences_are_lines;

static const char *line_worker; /* NULL: the lines do not name one */

void weir__log_worker(const char *name)
{
    line_worker = name;
}

void weir__log_format(enum weir__log_format format)
{
    line_format = format;
}

void weir__log_sentences(bool are_lines)
{
    sentences_are_lines = are_lines;
}

/* --- standard error ------------------------------------------------------- */

enum { WAIT_MS = 100, WAITS = 10 };

static atomic_bool is_bounded; /* no write waits for long */
static atomic_bool is_stuck;   /* the last line was not read in time: */
static atomic_bool is_cut;     /* a part of it was written */
static atomic_uint dropped;    /* lines since the last that was written */
static atomic_int own_fd;      /* 0: not known yet */

void weir__log_bound(void)
{
    atomic_store(&is_bounded, true);
}

/* O_NONBLOCK on standard error itself would be for all processes that have the
 * same one, so a pipe and a terminal are opened once more. */
static int error_fd(void)
{
    int fd = atomic_load(&own_fd), none = 0;
    struct stat at;

    if (fd != 0)
        return fd;
    if (fstat(STDERR_FILENO, &at) == 0 &&
        (S_ISFIFO(at.st_mode) || S_ISCHR(at.st_mode)))
        fd = open("/proc/self/fd/2",
                  O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd <= 0)
        fd = STDERR_FILENO;
    if (atomic_compare_exchange_strong(&own_fd, &none, fd))
        return fd;
    if (fd != STDERR_FILENO)
        (void)close(fd); /* another thread was first */
    return none;
}

static bool has_room(int fd, int ms)
{
    struct pollfd out = {.fd = fd, .events = POLLOUT};

    return poll(&out, 1, ms) != 0;
}

/* As write; EAGAIN: not without waiting. */
static ssize_t write_now(const char *bytes, size_t len)
{
    int fd = error_fd();
    ssize_t sent = send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent >= 0 || errno != ENOTSOCK)
        return sent;
    if (fd != STDERR_FILENO || has_room(fd, 0))
        return write(fd, bytes, len);
    errno = EAGAIN;
    return -1;
}

/* False: no process reads in time. Other errors are dropped. */
static bool write_bounded(const char *bytes, size_t len)
{
    const size_t all = len;
    int waits = atomic_load(&is_stuck) ? WAITS : 0;

    while (len > 0) {
        ssize_t count = write_now(bytes, len);

        if (count > 0) {
            bytes += count;
            len -= (size_t)count;
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            return true;
        } else if (errno == EAGAIN &&
                   (waits++ >= WAITS || !has_room(error_fd(), WAIT_MS))) {
            atomic_store(&is_cut, atomic_load(&is_cut) || len < all);
            atomic_store(&is_stuck, true);
            return false;
        }
    }
    atomic_store(&is_stuck, false);
    return true;
}

bool weir__write_error(const char *bytes, size_t len)
{
    if (!atomic_load(&is_bounded))
        return write(STDERR_FILENO, bytes, len) >= 0;
    if (atomic_load(&is_cut)) {
        if (!write_bounded("\n", 1))
            return false;
        atomic_store(&is_cut, false);
    }
    return write_bounded(bytes, len);
}

/* --- a line --------------------------------------------------------------- */

enum { LINE_CAP = 6144, ROOM = LINE_CAP - 8 }; /* kept for the end */

struct line {
    char bytes[LINE_CAP];
    size_t len;
};

/* What does not fit is left out. */
static void put(struct line *line, const char *text)
{
    size_t room = ROOM - line->len;
    size_t len = strlen(text);

    len = len > room ? room : len;
    memcpy(line->bytes + line->len, text, len);
    line->len += len;
}

static void put_end(struct line *line, const char *text)
{
    size_t len = strlen(text);

    memcpy(line->bytes + line->len, text, len);
    line->len += len;
}

/* A character of JSON's: what core/visible.h shows needs no other escapes. */
static void put_json(struct line *line, char c)
{
    const char escaped[] = {'\\', c, '\0'};

    put(line, c == '"' || c == '\\' ? escaped : escaped + 1);
}

static void put_foreign(struct line *line, struct weir_slice text)
{
    char part[64];

    while (text.len > 0) {
        size_t len = weir__visible_take(&text, part, sizeof(part));

        for (size_t i = 0; line_format == WEIR__LOG_JSON && i < len; i++)
            put_json(line, part[i]);
        if (line_format == WEIR__LOG_TEXT)
            put(line, part);
    }
}

static void put_now(struct line *line)
{
    struct timespec now = {0};
    char text[32];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    weir__time_print((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, text);
    put(line, text);
}

/* --- its beginning -------------------------------------------------------- */

/* $JOURNAL_STREAM names the device and inode of what the journal reads:
 * systemd.exec(5). A child may have it with another stderr. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char own[48];
    struct stat at;

    if (stream == NULL || fstat(STDERR_FILENO, &at) < 0)
        return false;
    (void)snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)at.st_dev,
                   (unsigned long long)at.st_ino); /* fits */
    return strcmp(stream, own) == 0;
}

bool weir__is_coloured(int fd)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fd) == 1 && (none == NULL || none[0] == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

static void put_level(struct line *line, enum weir_level level)
{
    const bool is_coloured = weir__is_coloured(STDERR_FILENO);

    put(line, " ");
    put(line, is_coloured ? levels[level].colour : "");
    put(line, levels[level].name);
    put(line, is_coloured ? "\033[0m " : " ");
}

/* Sentences have no time and level as text. */
static void begin(struct line *line, enum weir_level level, bool is_sentence)
{
    const char priority[] = {'<', levels[level].priority, '>', '\0'};
    const bool is_told = is_journal();

    is_sentence = is_sentence && !sentences_are_lines;
    put(line, is_told ? priority : "");
    if (line_format == WEIR__LOG_JSON) {
        put(line, "{\"time\":\"");
        put_now(line);
        put(line, "\",\"level\":\"");
        put(line, levels[level].name);
        put(line, "\",\"text\":\"");
    } else if (is_sentence) {
        put(line, "weir: ");
    } else if (!is_told) {
        put_now(line);
        put_level(line, level);
    }
    if (line_worker != NULL && line_format == WEIR__LOG_TEXT && !is_sentence) {
        put(line, "worker ");
        put(line, line_worker);
        put(line, ": ");
    }
}

static void close_line(struct line *line)
{
    put_end(line, line_format == WEIR__LOG_JSON ? "}\n" : "\n");
}

/* What is said, which ends the text. */
static void put_text(struct line *line, struct weir_slice text)
{
    put_foreign(line, text);
    put(line, line_format == WEIR__LOG_JSON ? "\"" : "");
}

/* One more member of the object; as a whole or not at all. */
static void put_member(struct line *line, const char *name,
                       struct weir_slice text)
{
    const size_t before = line->len;

    put(line, ",\"");
    put(line, name);
    put(line, "\":\"");
    put_foreign(line, text);
    put(line, "\"");
    if (line->len == ROOM)
        line->len = before;
}

static void put_number(struct line *line, const char *name, int64_t number)
{
    char text[96];

    (void)snprintf(text, sizeof(text), ",\"%s\":%lld", name,
                   (long long)number); /* fits */
    put(line, line->len + strlen(text) < ROOM ? text : "");
}

static void put_parts(struct line *line, const struct weir_log_line *parts)
{
    if (line_worker != NULL)
        put_member(line, "worker", weir__slice_str(line_worker));
    if (parts->topic != NULL)
        put_member(line, "topic", weir__slice_str(parts->topic));
    if (parts->id.len > 0)
        put_member(line, "id", parts->id);
    if (parts->event != NULL)
        put_member(line, "event", weir__slice_str(parts->event));
    for (size_t i = 0; i < parts->field_count; i++) {
        const struct weir_log_field *field = &parts->fields[i];

        if (field->text != NULL)
            put_member(line, field->name, weir__slice_str(field->text));
        else
            put_number(line, field->name, field->number);
    }
}

/* A line that says how many are missing goes first. */
static bool write_dropped(unsigned count)
{
    struct line line = {.len = 0};
    char text[80];

    (void)snprintf(text, sizeof(text),
                   "%u lines were dropped, nobody read standard error",
                   count); /* fits */
    begin(&line, WEIR_LEVEL_WARN, false);
    put_text(&line, weir__slice_str(text));
    close_line(&line);
    return weir__write_error(line.bytes, line.len);
}

static void end(struct line *line)
{
    unsigned missing = atomic_exchange(&dropped, 0);

    close_line(line);
    if ((missing == 0 || write_dropped(missing)) &&
        (weir__write_error(line->bytes, line->len) ||
         !atomic_load(&is_bounded)))
        return;
    (void)atomic_fetch_add(&dropped, missing + 1);
}

/* --- sentences and log lines ---------------------------------------------- */

WEIR_PRINTF(2, 0)
static void say(enum weir_level level, const char *format, va_list args)
{
    struct line line = {.len = 0};
    char raw[1024];
    int wanted = vsnprintf(raw, sizeof(raw), format, args);

    begin(&line, level, true);
    put_text(&line, weir__visible_formatted(raw, sizeof(raw), wanted));
    end(&line);
}

void weir__complain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(WEIR_LEVEL_ERROR, format, args);
    va_end(args);
}

void weir__note(const struct weir__cli *cli, const char *format, ...)
{
    va_list args;

    if (cli->log_level > WEIR_LEVEL_INFO)
        return;
    va_start(args, format);
    say(WEIR_LEVEL_INFO, format, args);
    va_end(args);
}

void weir__log_line(const struct weir_log_line *log_line, void *arg)
{
    struct line line = {.len = 0};

    (void)arg;
    begin(&line, log_line->level, false);
    put_text(&line, weir__slice_str(log_line->text));
    if (line_format == WEIR__LOG_JSON)
        put_parts(&line, log_line);
    end(&line);
}
