/* SPDX-License-Identifier: MIT */

/* Talk: sentences and log lines, all of it to stderr, a line in one write:
 * threads may log at once. Nothing here needs the heap or a lock, so that a
 * handler of signals may talk as well. */

#include "adapters/cli/cli.h"
#include "adapters/cli/time.h"
#include "core/text.h"
#include "core/visible.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void write_line(const struct line *line)
{
    if (write(STDERR_FILENO, line->bytes, line->len) < 0)
        return; /* nobody listens */
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

static void end(struct line *line)
{
    put_end(line, line_format == WEIR__LOG_JSON ? "}\n" : "\n");
    write_line(line);
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
