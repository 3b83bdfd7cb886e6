/* SPDX-License-Identifier: MIT */

/* Fibres, processes, events and the clock: who runs when. */

#include "tests/sim/fibre.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "core/random.h"

#if defined(__SANITIZE_ADDRESS__)
#    define SIM_ASAN 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define SIM_ASAN 1
#    endif
#endif
#ifdef SIM_ASAN
#    include <sanitizer/asan_interface.h>
#    include <sanitizer/common_interface_defs.h>
#endif

enum { STACK = 256 * 1024, GUARD = 4096, FIRST_PID = 1000 };
#define BEGIN (1000 * SIM_S)

struct process {
    int pid;
    const char *name;
    uint64_t turns;
    bool is_paused;
    struct process *next;
};

struct fibre {
    ucontext_t context;
    void (*fn)(void *arg);
    void *arg;
    bool (*ready)(void *arg); /* wakes it; NULL: only time does */
    void *ready_arg;
    int64_t until_ns;
    bool was_ready, has_ended;
    const void *waits_for; /* NULL: it was woken, or does not wait */
    int locks, error;
    uintptr_t id;
    struct process *process;
    char *stack; /* its guard page comes first */
    void *fake_stack;
    struct fibre *next;
};

struct event {
    int64_t at_ns;
    uint64_t no; /* events of one time come in their order */
    void (*fn)(void *arg);
    void *arg;
    bool is_owed; /* comes at the end of the world, too */
};

static struct world {
    bool is_open;
    int64_t now_ns;
    uint64_t random, hash;
    ucontext_t home;
    void *home_fake_stack;
    const void *home_stack;
    size_t home_size;
    struct fibre *fibres, *current;
    struct process *processes;
    uintptr_t last_id;
    int last_pid;
    struct event *events; /* a heap, the earliest first */
    size_t event_count, event_cap;
    uint64_t last_event;
    char *stacks; /* free ones; each begins with the next, behind its guard */
} world;

void sim_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)fprintf(stderr, "sim: ");
    (void)vfprintf(stderr, format, args);
    (void)fprintf(stderr, "\n");
    va_end(args);
    abort();
}

static void *grow(void *ptr, size_t size)
{
    ptr = realloc(ptr, size);
    if (ptr == NULL)
        sim_fail("no memory for %zu bytes", size);
    return ptr;
}

/* --- chance and time ----------------------------------------------------- */

int64_t sim_now(void)
{
    return world.now_ns;
}

uint64_t sim_random(void)
{
    return weir__random_next(&world.random);
}

uint64_t sim_below(uint64_t limit)
{
    return limit == 0 ? 0 : sim_random() % limit;
}

bool sim_one_in(uint64_t count)
{
    return count != 0 && sim_below(count) == 0;
}

uint64_t sim_hash(void)
{
    return world.hash;
}

/* FNV-1a. */
void sim_note(const void *bytes, size_t len)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < len; i++)
        world.hash = (world.hash ^ byte[i]) * UINT64_C(1099511628211);
}

/* --- events -------------------------------------------------------------- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->no < b->no;
}

static void add_event(struct event event)
{
    size_t i = world.event_count++;

    if (world.event_count > world.event_cap) {
        world.event_cap = world.event_cap * 2 + 64;
        world.events =
            grow(world.events, world.event_cap * sizeof(*world.events));
    }
    while (i > 0 && is_before(&event, &world.events[(i - 1) / 2])) {
        world.events[i] = world.events[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    world.events[i] = event;
}

void sim_at(int64_t at_ns, void (*fn)(void *arg), void *arg)
{
    add_event((struct event){at_ns, ++world.last_event, fn, arg, false});
}

void sim_event(int64_t at_ns, void (*fn)(void *arg), void *arg)
{
    add_event((struct event){at_ns, ++world.last_event, fn, arg, true});
}

static struct event take_event(void)
{
    struct event first = world.events[0];
    struct event last = world.events[--world.event_count];
    size_t i = 0;

    for (size_t child = 1; child < world.event_count; child = 2 * i + 1) {
        if (child + 1 < world.event_count &&
            is_before(&world.events[child + 1], &world.events[child]))
            child++;
        if (!is_before(&world.events[child], &last))
            break;
        world.events[i] = world.events[child];
        i = child;
    }
    world.events[i] = last;
    return first;
}

void sim_events_end(void)
{
    while (world.event_count > 0) {
        struct event event = take_event();

        if (event.is_owed)
            event.fn(event.arg);
    }
}

/* --- switching ----------------------------------------------------------- */

#ifdef SIM_ASAN
static void leave(void **keep, const void *stack, size_t size)
{
    __sanitizer_start_switch_fiber(keep, stack, size);
}

static void unpoison(char *stack, size_t size)
{
    __asan_unpoison_memory_region(stack, size);
}

static void arrive(void *kept, const void **stack, size_t *size)
{
    __sanitizer_finish_switch_fiber(kept, stack, size);
}
#else
static void leave(void **keep, const void *stack, size_t size)
{
    (void)keep;
    (void)stack;
    (void)size;
}

static void unpoison(char *stack, size_t size)
{
    (void)stack;
    (void)size;
}

static void arrive(void *kept, const void **stack, size_t *size)
{
    (void)kept;
    (void)stack;
    (void)size;
}
#endif

/* From the fibre that runs to sim_run. */
static void switch_home(struct fibre *fibre)
{
    leave(fibre->has_ended ? NULL : &fibre->fake_stack, world.home_stack,
          world.home_size);
    (void)swapcontext(&fibre->context, &world.home); /* cannot fail */
    arrive(fibre->fake_stack, &world.home_stack, &world.home_size);
}

static void begin(void)
{
    struct fibre *fibre = world.current;

    arrive(NULL, &world.home_stack, &world.home_size);
    fibre->fn(fibre->arg);
    fibre->has_ended = true;
    switch_home(fibre);
}

static void switch_to(struct fibre *fibre)
{
    world.current = fibre;
    sim_note(&fibre->id, sizeof(fibre->id));
    errno = fibre->error;
    leave(&world.home_fake_stack, fibre->stack + GUARD, STACK);
    (void)swapcontext(&world.home, &fibre->context); /* cannot fail */
    arrive(world.home_fake_stack, NULL, NULL);
    fibre->error = errno;
    world.current = NULL;
}

/* --- fibres -------------------------------------------------------------- */

/* Stacks are used again: to map one costs more than what most fibres do. */
static char *take_stack(void)
{
    char *stack = world.stacks;

    if (stack != NULL) {
        unpoison(stack + GUARD, STACK);
        memcpy(&world.stacks, stack + GUARD, sizeof(world.stacks));
        return stack;
    }
    stack = mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, GUARD, PROT_NONE) != 0)
        sim_fail("no stack for a fibre");
    return stack;
}

static void give_stack(char *stack)
{
    unpoison(stack + GUARD, STACK);
    memcpy(stack + GUARD, &world.stacks, sizeof(world.stacks));
    world.stacks = stack;
}

static uintptr_t add_fibre(struct process *process, void (*fn)(void *arg),
                           void *arg)
{
    struct fibre *fibre = grow(NULL, sizeof(*fibre));
    struct fibre **last = &world.fibres;

    *fibre = (struct fibre){.fn = fn,
                            .arg = arg,
                            .until_ns = world.now_ns,
                            .id = ++world.last_id,
                            .process = process,
                            .stack = take_stack()};
    (void)getcontext(&fibre->context); /* cannot fail */
    fibre->context.uc_stack.ss_sp = fibre->stack + GUARD;
    fibre->context.uc_stack.ss_size = STACK;
    makecontext(&fibre->context, begin, 0);
    while (*last != NULL)
        last = &(*last)->next;
    *last = fibre;
    return fibre->id;
}

static void free_fibre(struct fibre **link)
{
    struct fibre *fibre = *link;

    *link = fibre->next;
    give_stack(fibre->stack);
    free(fibre);
}

bool sim_is_open(void)
{
    return world.is_open;
}

bool sim_is_inside(void)
{
    return world.current != NULL;
}

bool sim_block(bool (*ready)(void *arg), void *arg, int64_t until_ns)
{
    struct fibre *fibre = world.current;

    if (fibre == NULL)
        sim_fail("a call blocks outside of a fibre");
    if (fibre->locks != 0)
        sim_fail("process %s blocks with %d mutexes", fibre->process->name,
                 fibre->locks);
    fibre->ready = ready;
    fibre->ready_arg = arg;
    fibre->until_ns = until_ns;
    switch_home(fibre);
    return fibre->was_ready;
}

void sim_sleep(int64_t ns)
{
    (void)sim_block(NULL, NULL, world.now_ns + ns); /* nothing else wakes it */
}

static bool is_woken(void *arg)
{
    return ((const struct fibre *)arg)->waits_for == NULL;
}

bool sim_wait(const void *object, int64_t until_ns)
{
    struct fibre *fibre = world.current;
    bool woken;

    fibre->waits_for = object;
    woken = sim_block(is_woken, fibre, until_ns);
    fibre->waits_for = NULL;
    return woken;
}

void sim_wake(const void *object, bool all)
{
    struct fibre *chosen = NULL;
    uint64_t count = 0;

    for (struct fibre *fibre = world.fibres; fibre != NULL;
         fibre = fibre->next) {
        if (fibre->waits_for != object)
            continue;
        if (all)
            fibre->waits_for = NULL;
        else if (sim_one_in(++count))
            chosen = fibre;
    }
    if (chosen != NULL)
        chosen->waits_for = NULL;
}

uintptr_t sim_spawn(void (*fn)(void *arg), void *arg)
{
    return add_fibre(world.current->process, fn, arg);
}

uintptr_t sim_self(void)
{
    return world.current->id;
}

bool sim_has_ended(uintptr_t thread)
{
    for (struct fibre *fibre = world.fibres; fibre != NULL; fibre = fibre->next)
        if (fibre->id == thread)
            return fibre->has_ended;
    return true;
}

void sim_locked(int change)
{
    if (world.current != NULL)
        world.current->locks += change;
}

/* --- processes ----------------------------------------------------------- */

static struct process *find_process(int pid)
{
    struct process *process = world.processes;

    while (process != NULL && process->pid != pid)
        process = process->next;
    return process;
}

int sim_start(const char *name, void (*fn)(void *arg), void *arg)
{
    struct process *process = grow(NULL, sizeof(*process));

    *process = (struct process){
        .pid = ++world.last_pid, .name = name, .next = world.processes};
    world.processes = process;
    (void)add_fibre(process, fn, arg); /* nobody waits for its end */
    return process->pid;
}

void sim_kill(int pid)
{
    struct fibre **link = &world.fibres;

    if (world.current != NULL && world.current->process->pid == pid)
        sim_fail("a process kills itself: use sim_at");
    while (*link != NULL)
        if ((*link)->process->pid == pid)
            free_fibre(link);
        else
            link = &(*link)->next;
    sim_files_close(pid);
}

void sim_pause(int pid, bool is_paused)
{
    struct process *process = find_process(pid);

    if (process != NULL)
        process->is_paused = is_paused;
}

uint64_t sim_turns(int pid)
{
    const struct process *process = find_process(pid);

    return process == NULL ? 0 : process->turns;
}

int sim_pid(void)
{
    return world.current == NULL ? 1 : world.current->process->pid;
}

const char *sim_host(void)
{
    return world.current == NULL ? "sim" : world.current->process->name;
}

void sim_turn(void)
{
    world.current->process->turns++;
    world.now_ns += SIM_US;
}

/* --- the world ----------------------------------------------------------- */

/* One of the fibres that can go on, by chance; NULL: none, and *next_ns is when
 * the first one can, if that is before its value. */
static struct fibre *choose(int64_t *next_ns)
{
    struct fibre *chosen = NULL;
    uint64_t count = 0;

    for (struct fibre *fibre = world.fibres; fibre != NULL;
         fibre = fibre->next) {
        if (fibre->process->is_paused)
            continue;
        fibre->was_ready =
            fibre->ready != NULL && fibre->ready(fibre->ready_arg);
        if (fibre->was_ready || fibre->until_ns <= world.now_ns) {
            if (sim_below(++count) == 0)
                chosen = fibre;
        } else if (fibre->until_ns < *next_ns) {
            *next_ns = fibre->until_ns;
        }
    }
    return chosen;
}

static void bury(const struct fibre *fibre)
{
    struct fibre **link = &world.fibres;

    while (*link != fibre)
        link = &(*link)->next;
    free_fibre(link);
}

void sim_run(int64_t until_ns)
{
    if (world.current != NULL)
        sim_fail("sim_run inside of a fibre");
    while (world.now_ns < until_ns) {
        int64_t next_ns = until_ns;
        struct fibre *fibre = choose(&next_ns);

        if (fibre != NULL) {
            switch_to(fibre);
            if (fibre->has_ended)
                bury(fibre);
        } else if (world.event_count > 0 && world.events[0].at_ns <= next_ns) {
            struct event event = take_event();

            if (event.at_ns > world.now_ns)
                world.now_ns = event.at_ns;
            event.fn(event.arg);
        } else {
            world.now_ns = next_ns;
        }
    }
}

void sim_open(uint64_t seed)
{
    if (world.is_open)
        sim_fail("a second world");
    world = (struct world){.is_open = true,
                           .now_ns = BEGIN,
                           .random = seed,
                           .hash = UINT64_C(14695981039346656037),
                           .last_pid = FIRST_PID};
    sim_net = (struct sim_net){.least_ns = 20 * SIM_US,
                               .spread_ns = 200 * SIM_US,
                               .window = 4 * 1024 * 1024};
}

void sim_close(void)
{
    while (world.fibres != NULL)
        free_fibre(&world.fibres);
    for (struct process *process = world.processes; process != NULL;
         process = world.processes) {
        world.processes = process->next;
        sim_files_close(process->pid);
        free(process);
    }
    sim_files_end();
    sim_sockets_end();
    sim_names_end();
    while (world.stacks != NULL)
        (void)munmap(take_stack(), GUARD + STACK); /* is mapped */
    free(world.events);
    world = (struct world){.is_open = false};
}
