/* SPDX-License-Identifier: MIT */
#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>

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

int weir__error_set(struct weir_error *err, int code, const char *format, ...)
{
    va_list args;

    if (err == NULL)
        return code;
    err->code = code;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof(err->text), format, args); /* cut */
    va_end(args);
    return code;
}

void weir__log(const struct weir__log *log, enum weir_level level,
               const char *format, ...)
{
    char text[512];
    va_list args;

    if (log == NULL || log->fn == NULL || level < log->level)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* cut */
    va_end(args);
    log->fn(level, text, log->arg);
}
