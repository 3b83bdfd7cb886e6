/* SPDX-License-Identifier: MIT */
#include "adapters/web/sieve.h"

#include "adapters/cli/jq_process.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const double LIMIT_S = 5.0; /* also where there is little CPU */

struct weir__sieve {
    struct weir__sieves *sieves;
    weir__sieve_fn fn;
    void *arg;
    struct weir__jq jq;
    size_t count;
    struct weir__buf told; /* what the process has written */
    struct ev_io readable;
    struct ev_timer limit;
};

/* --- its end -------------------------------------------------------------- */

static void end(struct weir__sieve *sieve, int code, const char *text)
{
    struct weir__sieves *sieves = sieve->sieves;
    const char *why;
    char crash[128];

    ev_io_stop(sieves->loop, &sieve->readable);
    ev_timer_stop(sieves->loop, &sieve->limit);
    why = weir__jq_end(&sieve->jq);
    if (code == WEIR_EINVAL && text == NULL) {
        (void)snprintf(crash, sizeof(crash), "where: the program %s",
                       why); /* fits */
        text = crash;
    }
    for (size_t i = 0; i < WEIR__SIEVES_MAX; i++)
        if (sieves->running[i] == sieve)
            sieves->running[i] = NULL;
    sieve->fn(code, (const char *)sieve->told.ptr, text, sieve->arg);
    weir__buf_fini(&sieve->told);
    weir__mem_free(sieve);
}

static void on_limit(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    end(timer->data, WEIR_EINVAL, "where: the program did not end in time");
}

/* Everything was told, or all there will be. */
static void conclude(struct weir__sieve *sieve)
{
    char refusal[WEIR__JQ_WHY_CAP + 8];
    const char *text;

    weir__buf_append(&sieve->told, "", 1);
    text = (const char *)sieve->told.ptr;
    if (sieve->told.failed) {
        end(sieve, WEIR_ENOMEM, NULL);
    } else if (text[0] == '!') {
        (void)snprintf(refusal, sizeof(refusal), "where: %s", text + 1);
        end(sieve, WEIR_EINVAL, refusal);
    } else {
        end(sieve, sieve->told.len == sieve->count + 1 ? WEIR_OK : WEIR_EINVAL,
            NULL);
    }
}

static void on_readable(struct ev_loop *loop, struct ev_io *io, int events)
{
    struct weir__sieve *sieve = io->data;
    char bytes[4096];
    ssize_t got = read(io->fd, bytes, sizeof(bytes));

    (void)loop;
    (void)events;
    if (got > 0)
        weir__buf_append(&sieve->told, bytes, (size_t)got);
    else if (got == 0 || (errno != EINTR && errno != EAGAIN))
        conclude(sieve);
}

/* --- its beginning -------------------------------------------------------- */

bool weir__sieves_hold(struct weir__sieves *sieves)
{
    if (sieves->held == WEIR__SIEVES_MAX)
        return false;
    sieves->held++;
    return true;
}

void weir__sieves_release(struct weir__sieves *sieves)
{
    WEIR_ASSERT(sieves->held > 0);
    sieves->held--;
}

/* There is one for each holder. */
static struct weir__sieve **free_place(struct weir__sieves *sieves)
{
    size_t i = 0;

    while (i < WEIR__SIEVES_MAX - 1 && sieves->running[i] != NULL)
        i++;
    WEIR_ASSERT(sieves->held > 0 && sieves->running[i] == NULL);
    return &sieves->running[i];
}

static void watch(struct weir__sieve *sieve)
{
    (void)fcntl(sieve->jq.fd, F_SETFL, O_NONBLOCK);
    ev_io_init(&sieve->readable, on_readable, sieve->jq.fd, EV_READ);
    sieve->readable.data = sieve;
    ev_io_start(sieve->sieves->loop, &sieve->readable);
    ev_timer_init(&sieve->limit, on_limit, LIMIT_S, 0.0);
    sieve->limit.data = sieve;
    ev_timer_start(sieve->sieves->loop, &sieve->limit);
}

int weir__sieve_start(struct weir__sieves *sieves, const char *program,
                      const struct weir__buf *lines, size_t count,
                      weir__sieve_fn fn, void *arg)
{
    struct weir__sieve **place = free_place(sieves);
    struct weir__sieve *sieve = weir__mem_new(sizeof(*sieve));
    int rc;

    WEIR_ASSERT(sieves->loop != NULL);
    if (sieve == NULL)
        return WEIR_ENOMEM;
    sieve->sieves = sieves;
    sieve->fn = fn;
    sieve->arg = arg;
    sieve->count = count;
    rc = weir__jq_start(&sieve->jq, program, lines, count);
    if (rc != WEIR_OK) {
        weir__mem_free(sieve);
        return rc;
    }
    watch(sieve);
    *place = sieve;
    return WEIR_OK;
}

void weir__sieves_close(struct weir__sieves *sieves)
{
    for (size_t i = 0; i < WEIR__SIEVES_MAX; i++)
        if (sieves->running[i] != NULL)
            end(sieves->running[i], WEIR_ECANCELED, NULL);
}
