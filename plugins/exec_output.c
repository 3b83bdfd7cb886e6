/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "exec.h"

enum {
    /* Of a line of the log that has output: its time and level, and with the
     * names in front what is cut beyond. */
    LOG_REST = 31,
    LOG_MAX = 511,
    LINE_LEAST = 340 /* whatever the id */
};

void output_about(struct output *output, const struct weir_job *job)
{
    output->job = job;
    output->log_before =
        job == NULL ? output->loop_before
                    : weir_job_topic(job).len + weir_job_id(job).len + 3;
}

static void put(const struct output *output, enum weir_level level,
                const char *line)
{
    if (output->job != NULL)
        weir_job_log(output->job, level, line);
    else
        weir_loop_log(output->loop, level, line);
}

/* What exec says of it; the loop names the plugin. */
static void say(const struct output *output, enum weir_level level,
                const char *line)
{
    char text[LINE_CAP + 8];

    (void)snprintf(text, sizeof(text), "exec: %s", line); /* fits */
    put(output, level, output->job != NULL ? text : line);
}

/* Is there room for a line? What is dropped is the end, also where a shorter
 * line would have room. */
static bool takes(struct output *output, size_t len)
{
    size_t cost = LOG_REST + output->log_before + len;

    if (output->dropped_lines > 0 || output->logged + cost > output->max) {
        output->dropped += len;
        output->dropped_lines++;
        return false;
    }
    output->logged += cost;
    return true;
}

static bool is_silent(const struct output *output)
{
    return output->job == NULL && output->loop == NULL;
}

static void end_line(struct output *output)
{
    output->line[output->line_len] = '\0';
    exec_clean(output->line, output->line_len);
    if (output->line_len > 0 && !is_silent(output)) {
        memcpy(output->last, output->line, output->line_len + 1);
        if (takes(output, output->line_len))
            put(output, WEIR_LEVEL_INFO, output->line);
    }
    output->line_len = 0;
}

/* What is there of a character goes into the next part. */
static void end_part(struct output *output)
{
    char rest[4];
    size_t whole = exec_whole(output->line, output->line_len);
    size_t rest_len = output->line_len - whole; /* 3 at most */

    memcpy(rest, output->line + whole, rest_len);
    output->line_len = whole;
    end_line(output);
    memcpy(output->line, rest, rest_len);
    output->line_len = rest_len;
}

/* A part that is longer would be cut by the log. */
static size_t line_max(const struct output *output)
{
    size_t before = output->log_before;

    if (before > LOG_MAX - LINE_LEAST)
        return LINE_LEAST;
    return before < LOG_MAX - LINE_CAP ? LINE_CAP : LOG_MAX - before;
}

void output_take(struct output *output, const char *bytes, size_t len)
{
    size_t most = line_max(output);

    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n')
            end_line(output);
        else if (output->line_len >= most)
            end_part(output);
        if (bytes[i] != '\n')
            output->line[output->line_len++] = bytes[i];
    }
}

void output_say(struct output *output, const char *what, const char *bytes,
                size_t len)
{
    char line[LINE_CAP + 1];
    size_t most = LINE_LEAST, from = strlen(what);

    if (len > most - from)
        len = exec_whole(bytes, most - from);
    memcpy(line, what, from);
    memcpy(line + from, bytes, len);
    len += from;
    line[len] = '\0';
    exec_clean(line, len);
    if (takes(output, len))
        say(output, WEIR_LEVEL_WARN, line);
}

void output_end_line(struct output *output)
{
    if (output->line_len > 0)
        end_line(output);
}

void output_end(struct output *output)
{
    char text[120];

    output->logged = 0;
    if (output->dropped_lines == 0)
        return;
    (void)snprintf(text, sizeof(text),
                   "%zu bytes of output not shown, in %zu lines",
                   output->dropped, output->dropped_lines); /* fits */
    if (!is_silent(output))
        say(output, WEIR_LEVEL_WARN, text);
    output->dropped = 0;
    output->dropped_lines = 0;
}
