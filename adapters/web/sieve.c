/* SPDX-License-Identifier: MIT */
#include "adapters/web/sieve.h"

#include "adapters/cli/filter.h"
#include "adapters/cli/options.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CPU_S = 2,
    MEMORY = 256 * 1024 * 1024, /* beside what this process has */
    FILES_MAX = 4096
};

static const double LIMIT_S = 5.0; /* also where there is little CPU */

struct weir__sieve {
    struct weir__sieves *sieves;
    weir__sieve_fn fn;
    void *arg;
    pid_t pid;
    size_t count;
    struct weir__buf told; /* what the process has written */
    struct ev_io readable;
    struct ev_timer limit;
};

/* --- the process ---------------------------------------------------------- */

static void write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t put = write(fd, bytes, len);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            _exit(EXIT_FAILURE);
        bytes += put;
        len -= (size_t)put;
    }
}

/* What this process has now, and MEMORY more. */
static void limit_memory(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    struct rlimit limit;

    if (file == NULL)
        return;
    if (fscanf(file, "%lu", &pages) == 1) {
        limit.rlim_cur = limit.rlim_max =
            (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY;
        (void)setrlimit(RLIMIT_AS, &limit); /* the time is limited anyway */
    }
    (void)fclose(file); /* it was only read */
}

/* No file but `out`, which becomes 3, and no other is opened: a program may
 * import. Nothing of the environment. */
static void shut_in(int out)
{
    const struct rlimit none = {0, 0};
    const struct rlimit cpu = {CPU_S, CPU_S + 1};
    static char *no_variables[] = {NULL};
    extern char **environ;
    int null = open("/dev/null", O_RDWR);

    environ = no_variables;
    for (int fd = 0; fd < 3; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            _exit(EXIT_FAILURE);
    limit_memory();
    if (out != 3 && dup2(out, 3) < 0)
        _exit(EXIT_FAILURE);
    for (int fd = 4; fd < FILES_MAX; fd++)
        (void)close(fd); /* most are not open */
    if (setrlimit(RLIMIT_NOFILE, &none) != 0 ||
        setrlimit(RLIMIT_CORE, &none) != 0)
        _exit(EXIT_FAILURE);
    (void)setrlimit(RLIMIT_CPU, &cpu); /* the parent has a clock, too */
}

static _Noreturn void look(int out, const char *program,
                           const struct weir__buf *lines, size_t count)
{
    const struct weir__conditions conditions = {.where = program};
    const char *line = (const char *)lines->ptr;
    struct weir__filter filter = {0};
    struct weir_error err = {0};

    shut_in(out);
    if (weir__filter_init(&filter, &conditions, 0, &err) < 0) {
        write_all(3, "!", 1);
        write_all(3, err.text, strlen(err.text));
        _exit(EXIT_SUCCESS);
    }
    for (size_t i = 0; i < count; i++) {
        const char taken = weir__filter_look(&filter, weir__slice_str(line));

        write_all(3, &taken, 1);
        line += strlen(line) + 1;
    }
    _exit(EXIT_SUCCESS);
}

/* --- its end -------------------------------------------------------------- */

static void end(struct weir__sieve *sieve, int code, const char *text)
{
    struct weir__sieves *sieves = sieve->sieves;

    ev_io_stop(sieves->loop, &sieve->readable);
    ev_timer_stop(sieves->loop, &sieve->limit);
    (void)close(sieve->readable.fd);
    (void)kill(sieve->pid, SIGKILL); /* it is over, or is to be */
    (void)waitpid(sieve->pid, NULL, 0);
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
    const char *text = (const char *)sieve->told.ptr;

    weir__buf_append(&sieve->told, "", 1);
    text = (const char *)sieve->told.ptr;
    if (sieve->told.failed)
        end(sieve, WEIR_ENOMEM, NULL);
    else if (text[0] == '!')
        end(sieve, WEIR_EINVAL, weir__text_behind(text + 1, "--"));
    else if (sieve->told.len == sieve->count + 1)
        end(sieve, WEIR_OK, NULL);
    else
        end(sieve, WEIR_EINVAL,
            "where: the program wants more time or memory than it may have");
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

static void watch(struct weir__sieve *sieve, int fd)
{
    ev_io_init(&sieve->readable, on_readable, fd, EV_READ);
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
    struct weir__sieve *sieve;
    int ends[2];

    WEIR_ASSERT(sieves->loop != NULL && !lines->failed);
    sieve = weir__mem_new(sizeof(*sieve));
    if (sieve == NULL)
        return WEIR_ENOMEM;
    if (pipe(ends) != 0) {
        weir__mem_free(sieve);
        return WEIR_ESYSTEM;
    }
    sieve->sieves = sieves;
    sieve->fn = fn;
    sieve->arg = arg;
    sieve->count = count;
    sieve->pid = fork();
    if (sieve->pid == 0)
        look(ends[1], program, lines, count);
    (void)close(ends[1]);
    if (sieve->pid < 0) {
        (void)close(ends[0]);
        weir__mem_free(sieve);
        return WEIR_ESYSTEM;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    watch(sieve, ends[0]);
    *place = sieve;
    return WEIR_OK;
}

void weir__sieves_close(struct weir__sieves *sieves)
{
    for (size_t i = 0; i < WEIR__SIEVES_MAX; i++)
        if (sieves->running[i] != NULL)
            end(sieves->running[i], WEIR_ECANCELED, NULL);
}
