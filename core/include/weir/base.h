/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BASE_H
#define WEIR_BASE_H

/* What every other weir header needs: byte slices, error codes, log levels.
 * Nothing here has to be linked, except weir_error_name and weir_error_text.
 *
 * Functions that can fail return WEIR_OK (0) or a negative WEIR_E... code and
 * write their out-parameters on success only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION       "0.1.0"

#if defined(__GNUC__) || defined(__clang__)
#    define WEIR_API               __attribute__((visibility("default")))
#    define WEIR_MUST_CHECK        __attribute__((warn_unused_result))
#    define WEIR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#    define WEIR_API
#    define WEIR_MUST_CHECK
#    define WEIR_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that belong to somebody else. Never owns, need not end in a NUL.
 * `ptr` may be NULL only when `len` is 0. */
struct weir_slice {
    const uint8_t *ptr;
    size_t len; /* bytes */
};

enum weir_level {
    WEIR_LEVEL_DEBUG,
    WEIR_LEVEL_INFO,
    WEIR_LEVEL_WARN,
    WEIR_LEVEL_ERROR
};

#define WEIR_ERROR_MAP(X)                                         \
    X(-1, NOMEM, "out of memory")                                 \
    X(-2, INVAL, "argument not accepted")                         \
    X(-3, TIMEDOUT, "deadline passed")                            \
    X(-4, CONN, "server connection lost")                         \
    X(-5, ABI, "plugin built for another ABI")                    \
    X(-6, EXISTS, "a job with this id exists already")            \
    X(-7, NOTFOUND, "no such job or topic")                       \
    X(-8, TOOBIG, "larger than the limit")                        \
    X(-9, FULL, "queue is full")                                  \
    X(-10, CANCELED, "given up because of shut-down")             \
    X(-11, SERVER, "the server refused the request")              \
    X(-12, MALFORMED, "not valid msgpack")                        \
    X(-13, NEWER, "written by a newer version of weir")           \
    X(-14, KIND, "not for topics of this kind")                   \
    X(-15, SYSTEM, "the operating system refused")                \
    X(-16, UNKNOWN, "connection lost before the answer came")     \
    X(-17, DROPPED, "dropped: its group is full")                 \
    X(-18, WEAK, "added, but not known to be where it was to be") \
    X(-19, THREAD, "not on the thread of the reactor's loop")

enum weir_error_code {
    WEIR_OK = 0,
#define WEIR_ERROR_MEMBER(code, name, text) WEIR_E##name = (code),
    WEIR_ERROR_MAP(WEIR_ERROR_MEMBER)
#undef WEIR_ERROR_MEMBER
};

/* The code's name, for example "WEIR_ENOMEM"; "WEIR_E?" for a foreign one. */
WEIR_API const char *weir_error_name(int code);

/* The code's meaning in a few words; never NULL. */
WEIR_API const char *weir_error_text(int code);

/* An error with a sentence for a person, filled where the fact is known. */
struct weir_error {
    int code;       /* WEIR_E... */
    char text[480]; /* NUL-terminated, no trailing newline */
};

/* Receives one log line, without newline. Runs on the loop thread; `text` is
 * borrowed for the call. */
typedef void (*weir_log_fn)(enum weir_level level, const char *text, void *arg);

/* A part of what a line says: a text, or a number where `text` is NULL. Comes
 * in arrays, and so never grows. */
struct weir_log_field {
    const char *name; /* "attempt", "delay_ms", ... */
    const char *text;
    int64_t number;
};

/* A log line with what it says in parts, for programs: docs/operating.md has
 * the events and their fields. Made by weir, and grows at its end. What plugins
 * and servers wrote stands in the parts as it is, control bytes too. */
struct weir_log_line {
    enum weir_level level;
    const char *text;                    /* the whole of it, for a person */
    const char *topic;                   /* NULL: about none */
    struct weir_slice id;                /* of a job; empty: about none */
    const char *event;                   /* "retry", "dead", ...; NULL: none */
    const struct weir_log_field *fields; /* what the event has besides */
    size_t field_count;
};

/* The same as weir_log_fn, in parts; all of `line` is borrowed for the call. */
typedef void (*weir_log_line_fn)(const struct weir_log_line *line, void *arg);

#ifdef __cplusplus
}
#endif
#endif
