/* SPDX-License-Identifier: MIT */
#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/text.h"
#include "core/visible.h"

enum { LINE_CAP = 512 };

const char *weir_error_name(int code)
{
    switch (code) {
    case WEIR_OK:
        return "WEIR_OK";
#define CASE(value, name, text) \
    case WEIR_E##name:          \
        return "WEIR_E" #name;
        WEIR_ERROR_MAP(CASE)
#undef CASE
    default:
        return "WEIR_E?";
    }
}

const char *weir_error_text(int code)
{
    switch (code) {
    case WEIR_OK:
        return "no error";
#define CASE(value, name, text) \
    case WEIR_E##name:          \
        return text;
        WEIR_ERROR_MAP(CASE)
#undef CASE
    default:
        return "unknown error";
    }
}

/* Plugins and servers write texts, too: one stays one line, and a terminal is
 * not told what to do. */
WEIR_PRINTF(3, 0)
static void make_line(char *buf, size_t cap, const char *format, va_list args)
{
    char raw[LINE_CAP];
    int wanted;
    struct weir_slice text;

    wanted = vsnprintf(raw, sizeof(raw), format, args);
    text = weir__visible_formatted(raw, sizeof(raw), wanted); /* cut */
    (void)weir__visible_take(&text, buf, cap);                /* cut */
}

int weir__error_set(struct weir_error *err, int code, const char *format, ...)
{
    va_list args;

    if (err == NULL)
        return code;
    err->code = code;
    va_start(args, format);
    make_line(err->text, sizeof(err->text), format, args);
    va_end(args);
    return code;
}

int weir__error_code(struct weir_error *err, int code)
{
    return code == WEIR_OK
               ? WEIR_OK
               : weir__error_set(err, code, "%s", weir_error_text(code));
}

/* What is no level, from a plugin, is not overlooked. */
static enum weir_level level_of(enum weir_level level)
{
    return level > WEIR_LEVEL_ERROR ? WEIR_LEVEL_ERROR : level;
}

bool weir__log_wants(const struct weir__log *log, enum weir_level level)
{
    return log != NULL && (log->fn != NULL || log->line_fn != NULL) &&
           level >= log->level;
}

/* "TOPIC ID: ", "TOPIC: " or nothing; returns its length. */
static size_t put_subject(const struct weir_log_line *about, char *text,
                          size_t cap)
{
    const struct weir_slice parts[] = {
        weir__slice_str(about->topic),
        weir__slice_str(about->id.len > 0 ? " " : ""), about->id,
        weir__slice_str(": ")};
    size_t len = 0;

    if (about->topic == NULL)
        return 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct weir_slice part = parts[i];

        len += weir__visible_take(&part, text + len, cap - len);
    }
    return len;
}

WEIR_PRINTF(3, 0)
static void pass_on(const struct weir__log *log,
                    const struct weir_log_line *about, const char *format,
                    va_list args)
{
    char text[LINE_CAP];
    size_t len = put_subject(about, text, sizeof(text));
    struct weir_log_line line = *about;

    make_line(text + len, sizeof(text) - len, format, args);
    line.level = level_of(about->level);
    line.text = text;
    if (log->line_fn != NULL)
        log->line_fn(&line, log->arg);
    else
        log->fn(line.level, text, log->arg);
}

void weir__log(const struct weir__log *log, enum weir_level level,
               const char *format, ...)
{
    const struct weir_log_line about = {.level = level};
    va_list args;

    if (!weir__log_wants(log, level))
        return;
    va_start(args, format);
    pass_on(log, &about, format, args);
    va_end(args);
}

void weir__log_about(const struct weir__log *log,
                     const struct weir_log_line *about, const char *format, ...)
{
    va_list args;

    if (!weir__log_wants(log, about->level))
        return;
    va_start(args, format);
    pass_on(log, about, format, args);
    va_end(args);
}

void weir__log_job(const struct weir__log *log, enum weir_level level,
                   const char *topic, struct weir_slice id, const char *format,
                   ...)
{
    const struct weir_log_line about = {
        .level = level, .topic = topic, .id = id};
    va_list args;

    if (!weir__log_wants(log, level))
        return;
    va_start(args, format);
    pass_on(log, &about, format, args);
    va_end(args);
}
