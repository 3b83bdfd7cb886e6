/* SPDX-License-Identifier: MIT */
#include "adapters/cli/add_lines.h"

#include "adapters/cli/client.h"
#include "adapters/cli/line_reader.h"
#include "adapters/cli/new_job.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/progress.h"
#include "adapters/cli/refusals.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SENT_MAX = 8 * 1024 * 1024 }; /* bytes on their way */

static const double FULL_AGAIN_S = 0.01;
static const double DRAW_S = 0.1;

struct lines;

/* A line on its way to its answer. */
struct sent_line {
    struct weir__refusal refusal; /* first: it becomes one, or is freed */
    struct lines *lines;
    size_t len; /* what it counts in `sent` */
};

struct lines {
    struct weir__client client;
    const char *topic;
    const char *shown; /* the file's name in sentences */
    struct weir__line_reader reader;
    struct weir__job_line job; /* the line taken last */
    bool is_held;    /* `job` could not be added: too much was waiting */
    bool is_looking; /* is_held, until it is known whether `job` is there */
    bool is_stopped; /* by a signal */
    bool is_broken;  /* the file could not be read, said */
    int code;        /* the first that a line failed with */
    uint64_t added, existing, refused, unknown;
    uint64_t weak;    /* of the added */
    uint64_t dropped; /* by full groups of a bounded topic */
    size_t sent;      /* bytes of lines without an answer */
    struct ev_io input;
    struct ev_timer again, draw;
    struct weir__progress progress;
    struct weir__refusals refusals;
};

/* --- answers ------------------------------------------------------------ */

static void go_on(struct lines *lines);
static void on_turn(struct lines *lines);

static void on_added(int code, const char *id, void *arg)
{
    struct sent_line *line = arg;
    struct lines *lines = line->lines;
    bool was_full = lines->sent >= SENT_MAX;

    (void)id;
    lines->weak += code == WEIR_EWEAK;
    if (code == WEIR_OK || code == WEIR_EWEAK)
        lines->added++;
    else if (code == WEIR_EEXISTS)
        lines->existing++;
    else if (code == WEIR_EUNKNOWN)
        lines->unknown++;
    else
        lines->refused++;
    WEIR_ASSERT(lines->sent >= line->len);
    lines->sent -= line->len;
    if (weir__is_limit(code)) {
        line->refusal.code = code;
        weir__refusals_note(&lines->refusals, &line->refusal);
    } else {
        if (code < 0 && code != WEIR_EEXISTS && code != WEIR_EWEAK &&
            lines->code == WEIR_OK)
            lines->code = code;
        weir__mem_free(line);
    }
    if (was_full || lines->sent == 0)
        go_on(lines);
}

static void on_drop(const char *topic, const char *group, enum weir_drop reason,
                    uint64_t count, void *arg)
{
    (void)topic;
    (void)group;
    (void)reason; /* overflow: nothing else comes with an add */
    ((struct lines *)arg)->dropped += count;
}

/* --- taking lines ------------------------------------------------------- */

static void refuse(struct lines *lines, const char *why)
{
    lines->refused++;
    weir__progress_clear(&lines->progress);
    weir__complain("%s:%" PRIu64 ": %s", lines->shown, lines->reader.line,
                   weir__text_behind(why, "json: "));
}

/* Add the job that was read; false when it has to wait. */
static bool add(struct lines *lines)
{
    struct weir_error err = {0};
    struct sent_line *line = weir__mem_new(sizeof(*line));
    int rc;

    if (line == NULL) {
        refuse(lines, weir_error_text(WEIR_ENOMEM));
        return true;
    }
    line->refusal.line = lines->reader.line;
    line->refusal.body_len = lines->job.job.body.len;
    line->lines = lines;
    line->len = lines->job.text.len + lines->job.body.len + lines->job.map.len +
                sizeof(*line);
    rc = lines->job.has_past
             ? weir_reactor_restore(lines->client.reactor, lines->topic,
                                    &lines->job.old, on_added, line, &err)
             : weir_reactor_add(lines->client.reactor, lines->topic,
                                &lines->job.job, on_added, line, &err);
    lines->is_held = rc == WEIR_EFULL;
    if (rc < 0)
        weir__mem_free(line);
    if (rc == WEIR_EFULL)
        return false;
    if (rc < 0) {
        refuse(lines, err.text);
        return true;
    }
    lines->sent += line->len;
    return true;
}

static bool is_blank(struct weir_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != ' ' && text.ptr[i] != '\t' && text.ptr[i] != '\r')
            return false;
    return true;
}

static void on_looked(int code, const struct weir_job_info *job, void *arg)
{
    struct lines *lines = arg;

    lines->is_looking = false;
    lines->is_held = false;
    if (job != NULL)
        lines->existing++;
    else if (code == WEIR_ENOTFOUND)
        (void)add(lines); /* is_held tells when it has to wait */
    else if (lines->code == WEIR_OK)
        lines->code = code;
    on_turn(lines);
}

/* An id that weir made may be that of a job which no index has. False: it is
 * not looked for, but added. */
static bool look(struct lines *lines)
{
    const char *id = lines->job.job.id;
    int rc;

    if (!lines->job.has_past || id == NULL || id[0] != '@')
        return false;
    rc = weir_reactor_show(lines->client.reactor, lines->topic, id, on_looked,
                           lines);
    if (rc == WEIR_EKIND)
        return false;
    lines->is_looking = rc == WEIR_OK;
    lines->is_held = rc == WEIR_OK;
    if (rc < 0)
        refuse(lines, weir_error_text(rc));
    return true;
}

static void take(struct lines *lines, struct weir_slice text)
{
    struct weir_error err = {0};

    if (is_blank(text))
        return;
    if (weir__job_line_read(&lines->job, text, &err) < 0)
        refuse(lines, err.text);
    else if (!look(lines))
        (void)add(lines); /* is_held tells when it has to wait */
}

/* Take all complete lines, but where the server's side is full. */
static void take_lines(struct lines *lines)
{
    struct weir_slice text;

    if (lines->is_looking || (lines->is_held && !add(lines)))
        return;
    while (lines->code == WEIR_OK && !lines->is_stopped && !lines->is_held) {
        switch (weir__line_reader_next(&lines->reader, &text)) {
        case WEIR__LINE_NONE:
            return;
        case WEIR__LINE_GOOD:
            take(lines, text);
            break;
        case WEIR__LINE_TOO_LONG:
            refuse(lines, "the line is longer than 64 MiB");
            break;
        }
    }
}

/* --- reading ------------------------------------------------------------ */

static void read_more(struct lines *lines)
{
    struct weir_error err = {0};

    if (weir__line_reader_fill(&lines->reader, &err) == WEIR_OK)
        return;
    lines->is_broken = true;
    weir__progress_clear(&lines->progress);
    weir__complain("--jsonl: cannot read %s behind line %" PRIu64 ": %s",
                   lines->shown, lines->reader.line, err.text);
}

static bool is_over(const struct lines *lines)
{
    return (lines->reader.is_ended || lines->is_stopped || lines->code < 0) &&
           (!lines->is_held || lines->is_stopped || lines->code < 0);
}

/* Read where there is room for what is read, else wait for answers. */
static void go_on(struct lines *lines)
{
    struct ev_loop *loop = lines->client.loop;

    if (is_over(lines)) {
        ev_io_stop(loop, &lines->input);
        ev_timer_stop(loop, &lines->again);
        if (lines->sent == 0 && !weir__refusals_wait(&lines->refusals))
            weir__client_finish(&lines->client, WEIR_OK);
    } else if (lines->is_looking) {
        ev_io_stop(loop, &lines->input);
        ev_timer_stop(loop, &lines->again);
    } else if (lines->is_held) {
        ev_io_stop(loop, &lines->input);
        ev_timer_start(loop, &lines->again);
    } else if (lines->sent < SENT_MAX) {
        ev_io_start(loop, &lines->input);
    } else {
        ev_io_stop(loop, &lines->input);
    }
}

static void on_turn(struct lines *lines)
{
    take_lines(lines);
    go_on(lines);
}

static void on_input(struct ev_loop *loop, struct ev_io *input, int events)
{
    struct lines *lines = input->data;

    (void)loop;
    (void)events;
    read_more(lines);
    on_turn(lines);
}

static void on_again(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    on_turn(timer->data);
}

static void on_draw(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    struct lines *lines = timer->data;

    (void)events;
    weir__progress_draw(&lines->progress, lines->reader.read,
                        lines->reader.line, ev_now(loop));
}

static void on_signal(void *arg)
{
    struct lines *lines = arg;

    if (lines->is_stopped) /* again: do not wait for answers */
        weir__client_finish(&lines->client, WEIR_OK);
    lines->is_stopped = true;
    go_on(lines);
}

/* --- all of it ---------------------------------------------------------- */

static void start_watchers(struct lines *lines)
{
    struct ev_loop *loop = lines->client.loop;

    ev_io_init(&lines->input, on_input, lines->reader.fd, EV_READ);
    lines->input.data = lines;
    ev_timer_init(&lines->again, on_again, FULL_AGAIN_S, FULL_AGAIN_S);
    lines->again.data = lines;
    ev_timer_init(&lines->draw, on_draw, DRAW_S, DRAW_S);
    lines->draw.data = lines;
    if (lines->progress.is_shown)
        ev_timer_start(loop, &lines->draw);
    weir__client_on_signal(&lines->client, on_signal, lines);
    ev_io_start(loop, &lines->input);
}

static void stop_watchers(struct lines *lines)
{
    struct ev_loop *loop = lines->client.loop;

    ev_io_stop(loop, &lines->input);
    ev_timer_stop(loop, &lines->again);
    ev_timer_stop(loop, &lines->draw);
    weir__progress_clear(&lines->progress);
}

static enum weir__exit print_counts(const struct lines *lines)
{
    bool is_bounded = strcmp(lines->client.kind, "bounded") == 0;
    struct weir__field dropped = {0};

    if (lines->client.cli->json) {
        if (is_bounded)
            dropped = weir__field_number("dropped", lines->dropped);
        return weir__print_object(WEIR__OBJECT(
            weir__field_number("added", lines->added),
            weir__field_number("existing", lines->existing),
            weir__field_number("refused", lines->refused), dropped));
    }
    (void)printf("added %" PRIu64 ", existing %" PRIu64 ", refused %" PRIu64,
                 lines->added, lines->existing, lines->refused);
    if (is_bounded)
        (void)printf(", dropped %" PRIu64, lines->dropped);
    (void)printf("\n");
    return WEIR__EXIT_DONE;
}

static enum weir__exit conclude(struct lines *lines)
{
    if (print_counts(lines) != WEIR__EXIT_DONE)
        return WEIR__EXIT_FAILED;
    if (lines->unknown > 0) {
        weir__complain("the connection to redis at %s was lost and no answer "
                       "came for %" PRIu64 " more; add the file again, what "
                       "has an id is not added twice",
                       lines->client.shown, lines->unknown);
        return WEIR__EXIT_UNREACHABLE;
    }
    if (lines->code < 0)
        return weir__client_exit(&lines->client, lines->code, "add");
    if (lines->weak > 0)
        weir__complain("%" PRIu64 " of these were added, but not confirmed: %s",
                       lines->weak,
                       weir__text_behind(lines->client.refusal, "redis: "));
    if (lines->is_stopped) {
        weir__complain("stopped behind line %" PRIu64 " of %s",
                       lines->reader.line, lines->shown);
        return WEIR__EXIT_FAILED;
    }
    if (lines->is_broken || lines->refused > 0 || lines->weak > 0)
        return WEIR__EXIT_FAILED;
    return lines->existing > 0 ? WEIR__EXIT_EXISTS : WEIR__EXIT_DONE;
}

/* The code is of reading the limits, without which it was said, too. */
static void on_said(int code, void *arg)
{
    (void)code;
    go_on(arg);
}

static enum weir__exit add_all(struct lines *lines)
{
    int code;

    lines->refusals = (struct weir__refusals){
        .client = &lines->client,
        .topic = lines->topic,
        .shown = lines->shown,
        .progress = &lines->progress,
        .done = on_said,
        .arg = lines,
    };
    weir__refusals_init(&lines->refusals);
    weir_reactor_on_drop(lines->client.reactor, on_drop, lines);
    start_watchers(lines);
    code = weir__client_wait(&lines->client);
    stop_watchers(lines);
    if (code < 0) /* no server was reached */
        return weir__client_exit(&lines->client, code, "add");
    return conclude(lines);
}

static bool open_input(struct lines *lines, const char *path,
                       uint64_t *ret_size)
{
    struct stat info;

    lines->shown = strcmp(path, "-") == 0 ? "stdin" : path;
    lines->reader.fd = STDIN_FILENO;
    if (strcmp(path, "-") != 0)
        lines->reader.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (lines->reader.fd < 0) {
        weir__complain("--jsonl: cannot open %s: %s", path, strerror(errno));
        return false;
    }
    if (fstat(lines->reader.fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        weir__complain("--jsonl: %s is a directory", lines->shown);
        (void)close(lines->reader.fd); /* was not read */
        return false;
    }
    if (fstat(lines->reader.fd, &info) == 0 && S_ISREG(info.st_mode))
        *ret_size = (uint64_t)info.st_size;
    return true;
}

enum weir__exit weir__add_lines(const struct weir__cli *cli, const char *topic,
                                const char *path)
{
    struct lines lines = {.topic = topic};
    uint64_t size = 0;
    enum weir__exit rc;

    if (!open_input(&lines, path, &size))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&lines.client, cli, NULL, 0);
    if (rc == WEIR__EXIT_NONE) {
        weir__progress_init(&lines.progress, cli, size,
                            ev_now(lines.client.loop));
        rc = weir__client_know(&lines.client, topic);
        if (rc == WEIR__EXIT_NONE)
            rc = add_all(&lines);
        weir__client_close(&lines.client);
    }
    weir__job_line_fini(&lines.job);
    weir__line_reader_fini(&lines.reader);
    if (lines.reader.fd != STDIN_FILENO)
        (void)close(lines.reader.fd); /* was only read */
    return rc;
}
