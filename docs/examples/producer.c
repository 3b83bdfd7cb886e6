/* SPDX-License-Identifier: MIT */
/* A program that only adds jobs, and has no loop: each line of its input is the
 * JSON body of one. Usage: producer redis://127.0.0.1:6379 TOPIC < lines */
#define _POSIX_C_SOURCE 200809L /* for -std=c11 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/thread.h>

enum { BATCH = 1000 };

struct counts {
    size_t sent, answered, added;
    int code; /* of a job that was not added */
};

static void on_added(const struct weir_added *added, size_t count, void *arg)
{
    struct counts *counts = arg;

    counts->answered += count;
    for (size_t i = 0; i < count; i++) {
        if (added[i].code == WEIR_OK)
            counts->added++;
        else
            counts->code = added[i].code;
    }
}

/* Send what was read. While too much is on its way, wait for answers first. */
static int send_batch(struct weir_thread *weir, struct weir_new_jobs *jobs,
                      struct weir_error *err)
{
    struct counts *counts = jobs->arg;
    struct weir_error why;
    int rc = WEIR_OK;

    if (jobs->count == 0)
        return WEIR_OK;
    for (;;) {
        rc = weir_thread_submit(weir, jobs, &why);
        if (rc != WEIR_EFULL || counts->answered == counts->sent)
            break;
        (void)weir_thread_wait(weir, 1000);
    }
    if (rc == WEIR_OK)
        counts->sent += jobs->count;
    else if (err->code == WEIR_OK)
        *err = why;
    for (size_t i = 0; i < jobs->count; i++)
        weir_body_free(jobs->jobs[i].body);
    jobs->count = 0;
    return rc;
}

static int send_lines(struct weir_thread *weir, const char *topic,
                      struct counts *counts, struct weir_error *err)
{
    struct weir_new_job batch[BATCH];
    struct weir_new_jobs jobs = {topic, batch, 0, on_added, counts};
    char *line = NULL;
    size_t cap = 0;
    int rc = WEIR_OK;

    while (rc == WEIR_OK && getline(&line, &cap, stdin) > 0) {
        batch[jobs.count] = (struct weir_new_job){0};
        rc = weir_body_from_json(line, strcspn(line, "\n"),
                                 &batch[jobs.count].body, err);
        if (rc == WEIR_OK)
            jobs.count++;
        if (rc == WEIR_OK && jobs.count == BATCH)
            rc = send_batch(weir, &jobs, err);
    }
    free(line);
    return send_batch(weir, &jobs, err); /* also those before a wrong line */
}

/* Among it that no server answers: weir tries again until one does. */
static void say(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "producer: %s\n", text);
}

int main(int argc, char **argv)
{
    struct weir_options options = {
        .redis_url = argv[1], .log = say, .log_level = WEIR_LEVEL_WARN};
    struct weir_thread *weir = NULL;
    struct counts counts = {0};
    struct weir_error err = {0};

    if (argc != 3) {
        fprintf(stderr, "usage: producer URL TOPIC < lines\n");
        return 2;
    }
    if (isatty(STDIN_FILENO))
        fprintf(stderr, "producer: a JSON body a line; ctrl-D ends\n");
    if (weir_thread_open(&options, &weir, &err) == WEIR_OK &&
        weir_thread_start(weir, &err) == WEIR_OK)
        (void)send_lines(weir, argv[2], &counts, &err);
    while (counts.answered < counts.sent)
        (void)weir_thread_wait(weir, -1);
    weir_thread_free(weir);
    printf("added %zu of %zu\n", counts.added, counts.sent);
    if (counts.code != WEIR_OK)
        fprintf(stderr, "producer: not added: %s\n",
                weir_error_text(counts.code));
    if (err.code != WEIR_OK)
        fprintf(stderr, "producer: %s\n", err.text);
    return err.code == WEIR_OK && counts.code == WEIR_OK ? 0 : 1;
}
