/* SPDX-License-Identifier: MIT */
#include "adapters/cli/jq_process.h"

#include "adapters/cli/options.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

#include <errno.h>
#include <fcntl.h>
#include <jq.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ALL_CPU_S = 2, JOB_CPU_S = 10, CHANNEL = 3 };

/* --- the program, in the child -------------------------------------------- */

/* The first line of what jq says, without its own name; if that is empty, words
 * for it. */
static void take_message(jv message, char why[static WEIR__JQ_WHY_CAP])
{
    jv text = jq_format_error(message); /* takes the message */
    const char *line = weir__text_behind(jv_string_value(text), "jq: error: ");
    size_t len = strcspn(line, "\n");

    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == ':'))
        len--;
    (void)snprintf(why, WEIR__JQ_WHY_CAP, "%.*s", (int)len, line);
    if (len == 0)
        (void)snprintf(why, WEIR__JQ_WHY_CAP, "an error without a text");
    jv_free(text);
}

/* Keeps the first of several messages. */
static void on_message(void *arg, jv message)
{
    char *why = arg;

    if (why[0] == '\0')
        take_message(message, why);
    else
        jv_free(message);
}

/* NULL: `why` says why. Without these attributes jq 1.6 ends the process where
 * a program has `import`. */
static jq_state *compile(const char *program, char why[static WEIR__JQ_WHY_CAP])
{
    jq_state *jq = jq_init();

    (void)snprintf(why, WEIR__JQ_WHY_CAP, "out of memory");
    if (jq == NULL)
        return NULL;
    why[0] = '\0';
    jq_set_attr(jq, jv_string("JQ_LIBRARY_PATH"), jv_array());
    jq_set_attr(jq, jv_string("JQ_ORIGIN"), jv_string("."));
    jq_set_attr(jq, jv_string("PROGRAM_ORIGIN"), jv_string("."));
    jq_set_error_cb(jq, on_message, why);
    if (jq_compile(jq, program) == 0) {
        if (why[0] == '\0')
            (void)snprintf(why, WEIR__JQ_WHY_CAP, "jq refuses the program");
        jq_teardown(&jq);
        return NULL;
    }
    jq_set_error_cb(jq, NULL, NULL);
    return jq;
}

/* Tells an error, 'f', from the end of the values, 'n'. Takes `last`. */
static char fail_or_end(jv last, char why[static WEIR__JQ_WHY_CAP])
{
    if (!jv_invalid_has_msg(jv_copy(last))) {
        jv_free(last);
        return 'n';
    }
    take_message(jv_invalid_get_msg(last), why);
    return 'f';
}

static char look(jq_state *jq, struct weir_slice job,
                 char why[static WEIR__JQ_WHY_CAP])
{
    jv value = jv_parse_sized((const char *)job.ptr, (int)job.len);
    bool is_taken = false;

    if (!jv_is_valid(value)) {
        (void)fail_or_end(value, why);
        return 'f';
    }
    jq_start(jq, value, 0);
    while (!is_taken) {
        value = jq_next(jq);
        if (!jv_is_valid(value))
            return fail_or_end(value, why);
        is_taken = jv_get_kind(value) != JV_KIND_NULL &&
                   jv_get_kind(value) != JV_KIND_FALSE;
        jv_free(value);
    }
    return 'y';
}

/* --- shutting the child in ------------------------------------------------ */

/* The child may have WEIR__JQ_MIB more than it has now. */
static void limit_memory(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    struct rlimit limit;

    if (file == NULL)
        return;
    if (fscanf(file, "%lu", &pages) == 1) {
        limit.rlim_cur = limit.rlim_max =
            (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) +
            (rlim_t)WEIR__JQ_MIB * 1024 * 1024;
        (void)setrlimit(RLIMIT_AS, &limit); /* the time is limited anyway */
    }
    (void)fclose(file); /* it was only read */
}

static void close_from(int fd)
{
    long end = sysconf(_SC_OPEN_MAX);

#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)fd, ~0U, 0U) == 0)
        return;
#endif
    for (; fd < end; fd++)
        (void)close(fd); /* most are not open */
}

/* Calls that allocate, read and write what is open, and tell the time. All
 * others get EPERM; jq continues or crashes. */
static void refuse_system_calls(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    static const unsigned int allowed[] = {
        SYS_read,  SYS_write,     SYS_exit_group, SYS_brk,
        SYS_mmap,  SYS_munmap,    SYS_mremap,     SYS_madvise,
        SYS_futex, SYS_setitimer, SYS_getrandom,  SYS_clock_gettime};
    enum { HEAD = 4, COUNT = sizeof(allowed) / sizeof(allowed[0]) };
#    if defined(__x86_64__)
    const unsigned int machine = AUDIT_ARCH_X86_64;
#    else
    const unsigned int machine = AUDIT_ARCH_AARCH64;
#    endif
    struct sock_filter code[HEAD + COUNT + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    const struct sock_fprog filter = {HEAD + COUNT + 2, code};

    for (unsigned int i = 0; i < COUNT; i++)
        code[HEAD + i] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
                                         (unsigned char)(COUNT - i), 0);
    code[HEAD + COUNT] = (struct sock_filter)BPF_STMT(
        BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    code[HEAD + COUNT + 1] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    /* a kernel without seccomp leaves the other bounds */
    (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
#endif
}

/* No file but `fd`, which becomes CHANNEL. */
static void shut_in(int fd)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    const struct rlimit none = {0, 0};
    int null = open("/dev/null", O_RDWR);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sigaction(SIGINT, &ignored, NULL); /* the parent ends both */
    (void)sigaction(SIGPROF, &normal, NULL);
    tzset(); /* reads a file */
    limit_memory();
    fd = fcntl(fd, F_DUPFD, CHANNEL + 1); /* the parent may lack 0, 1, 2 */
    null = fcntl(null, F_DUPFD, CHANNEL + 1);
    for (int i = 0; i <= CHANNEL; i++)
        if (dup2(i == CHANNEL ? fd : null, i) < 0)
            _exit(EXIT_FAILURE);
    close_from(CHANNEL + 1);
    if (setrlimit(RLIMIT_NOFILE, &none) != 0 ||
        setrlimit(RLIMIT_CORE, &none) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        _exit(EXIT_FAILURE);
    refuse_system_calls();
}

/* CPU time of the next job. The signal at its end ends the process. */
static void limit_job_time(void)
{
    const struct itimerval left = {.it_value = {.tv_sec = JOB_CPU_S}};

    if (setitimer(ITIMER_PROF, &left, NULL) != 0)
        _exit(EXIT_FAILURE);
}

/* --- the child ------------------------------------------------------------ */

static void write_all(const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t put = write(CHANNEL, at, len);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            _exit(EXIT_FAILURE);
        at += put;
        len -= (size_t)put;
    }
}

static void read_all(void *bytes, size_t len)
{
    char *at = bytes;

    while (len > 0) {
        ssize_t got = read(CHANNEL, at, len);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            _exit(EXIT_SUCCESS); /* no more jobs */
        at += got;
        len -= (size_t)got;
    }
}

static jq_state *begin(int fd, const char *program)
{
    char why[WEIR__JQ_WHY_CAP];
    jq_state *jq;

    shut_in(fd);
    jq = compile(program, why);
    if (jq != NULL)
        return jq;
    write_all("!", 1);
    write_all(why, strlen(why));
    _exit(EXIT_SUCCESS);
}

static _Noreturn void look_at_all(int fd, const char *program,
                                  const struct weir__buf *jobs, size_t count)
{
    static char *no_variables[] = {NULL};
    const struct rlimit cpu = {ALL_CPU_S, ALL_CPU_S + 1};
    const char *job = (const char *)jobs->ptr;
    char why[WEIR__JQ_WHY_CAP];
    extern char **environ;
    jq_state *jq;

    environ = no_variables;
    (void)setrlimit(RLIMIT_CPU, &cpu); /* the parent has a clock, too */
    jq = begin(fd, program);
    for (size_t i = 0; i < count; i++) {
        const char taken = look(jq, weir__slice_str(job), why);

        write_all(&taken, 1);
        job += strlen(job) + 1;
    }
    _exit(EXIT_SUCCESS);
}

/* Jobs come as their number, their bytes in all, and the bytes. The answers are
 * in memory that both processes have; a byte says that all are there. */
struct head {
    size_t count, len;
};

static void look_at_some(jq_state *jq, struct weir__jq_answers *answers)
{
    char why[WEIR__JQ_WHY_CAP], *jobs;
    const char *job;
    struct head head;

    read_all(&head, sizeof(head));
    jobs = weir__mem_new(head.len + 1);
    if (jobs == NULL)
        _exit(EXIT_FAILURE);
    read_all(jobs, head.len);
    job = jobs;
    for (size_t i = 0; i < head.count; i++) {
        char taken;

        limit_job_time();
        taken = look(jq, weir__slice_str(job), why);
        if (taken == 'f' && answers->why[0] == '\0')
            memcpy(answers->why, why, sizeof(why));
        answers->taken[i] = taken;
        job += strlen(job) + 1;
    }
    weir__mem_free(jobs);
    write_all(".", 1);
}

static _Noreturn void answer(int fd, const char *program,
                             struct weir__jq_answers *answers)
{
    jq_state *jq = begin(fd, program);

    write_all(".", 1);
    for (;;)
        look_at_some(jq, answers);
}

/* --- the parent ----------------------------------------------------------- */

static int start(struct weir__jq *jq, const char *program,
                 const struct weir__buf *jobs, size_t count)
{
    int ends[2];

    WEIR_ASSERT(jq->pid == 0);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return WEIR_ESYSTEM;
    jq->pid = fork();
    if (jq->pid == 0 && jobs != NULL)
        look_at_all(ends[1], program, jobs, count);
    if (jq->pid == 0)
        answer(ends[1], program, jq->answers);
    (void)close(ends[1]);
    if (jq->pid > 0) {
        (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
        jq->fd = ends[0];
        return WEIR_OK;
    }
    (void)close(ends[0]);
    jq->pid = 0;
    return WEIR_ESYSTEM;
}

int weir__jq_start(struct weir__jq *jq, const char *program,
                   const struct weir__buf *jobs, size_t count)
{
    WEIR_ASSERT(jobs != NULL && !jobs->failed);
    return start(jq, program, jobs, count);
}

/* False: the child has ended. */
static bool get(const struct weir__jq *jq, void *bytes, size_t len)
{
    ssize_t got;

    do
        got = recv(jq->fd, bytes, len, MSG_WAITALL);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)len;
}

static bool put(const struct weir__jq *jq, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t sent = send(jq->fd, at, len, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return false;
        at += sent > 0 ? sent : 0;
        len -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

int weir__jq_open(struct weir__jq *jq, const char *program,
                  struct weir_error *err)
{
    char first = '\0', why[WEIR__JQ_WHY_CAP] = "";
    void *shared = mmap(NULL, sizeof(*jq->answers), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = WEIR_ESYSTEM;

    if (shared != MAP_FAILED) {
        jq->answers = shared;
        rc = start(jq, program, NULL, 0);
    }
    if (rc != WEIR_OK)
        return weir__error_set(err, rc, "cannot start a process for jq: %s",
                               strerror(errno));
    if (get(jq, &first, 1) && first == '.')
        return WEIR_OK;
    if (first == '!')
        (void)recv(jq->fd, why, sizeof(why) - 1, MSG_WAITALL);
    else
        (void)snprintf(why, sizeof(why), "the program %s", weir__jq_end(jq));
    return weir__error_set(err, WEIR_EINVAL, "%s", why);
}

size_t weir__jq_ask(struct weir__jq *jq, const struct weir__buf *jobs,
                    size_t count)
{
    const struct head head = {count, jobs->len};
    size_t answered = 0;
    char done;

    WEIR_ASSERT(jq->pid > 0 && count <= WEIR__JQ_JOBS && !jobs->failed);
    memset(jq->answers->taken, 0, sizeof(jq->answers->taken));
    if (put(jq, &head, sizeof(head)) && put(jq, jobs->ptr, jobs->len) &&
        get(jq, &done, 1))
        return count;
    while (answered < count && jq->answers->taken[answered] != '\0')
        answered++;
    return answered < count ? answered : count - 1;
}

const char *weir__jq_end(struct weir__jq *jq)
{
    int status = 0;

    if (jq->answers != NULL)
        (void)munmap(jq->answers, sizeof(*jq->answers));
    jq->answers = NULL;
    if (jq->pid == 0)
        return "";
    (void)close(jq->fd);
    (void)kill(jq->pid, SIGKILL); /* a child that has ended stays as it is */
    while (waitpid(jq->pid, &status, 0) < 0 && errno == EINTR)
        ;
    jq->pid = 0;
    if (WIFSIGNALED(status) &&
        (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGPROF))
        return "wants more time than it may have";
    return "crashed jq or wants more memory than it may have";
}
