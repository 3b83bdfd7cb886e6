/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapters/redis/script.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/text.h"
#include "tests/harness/fault_search.h"
#include "tests/redis/bounded/bounded_fixture.h"
#include "tests/redis/store/lease_fixture.h"
#include "tests/sim/redis.h"
#include "tests/sim/server/local.h"

/* Random operations of three workers on a few groups. After each of them the
 * server's state is walked; in the end every event was handled or dropped, and
 * the events of each group were handled in their order. The workers and their
 * server are in a simulated world, so a seed repeats its run. WEIR_SEED and
 * WEIR_OPS say which operations and how many. */

enum { HOSTS = 3, GROUPS = 6, NUMBERS = 60000 };

struct model {
    uint64_t random;
    struct host *hosts[HOSTS];
    struct weir__options options;
    const char *groups[HOSTS]; /* that each serves */
    int next;                  /* number of the next event */
    int last_first[GROUPS];    /* of those that ran for the first time */
    bool has_run[NUMBERS];
};

static unsigned pick(struct model *model, unsigned count)
{
    return (unsigned)(weir__random_next(&model->random) % count);
}

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text == NULL ? fallback : strtoull(text, NULL, 10);
}

static struct weir__options *options_of(struct model *model, unsigned at)
{
    (void)snprintf(model->options.groups, sizeof(model->options.groups), "%s",
                   model->groups[at]);
    return &model->options;
}

/* None sleeps: what one was woken for may be another's now. */
static void serve_all(struct model *model)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        host_serve_with(model->hosts[i], options_of(model, i));
        /* time is the subject */
        (void)host_claim(model->hosts[i], 0, 300); /* tells the bounds */
    }
    (void)redis_int(proc, "DEL weir:{t}:idle");
}

/* In each row all groups are served. */
static void change_groups(struct model *model)
{
    static const char *const rows[][HOSTS] = {
        {"", "", ""},        {"g0 g1*", "!g0 !g1", "!g0 !g1*"},
        {"g1", "g*", "!g1"}, {"g* !g2 !g3", "g2 g3", "g2 g3"},
        {"", "g4", "!g4"},   {"g0 g1", "g2 g3", "!g0 !g1 !g2 !g3"}};
    const char *const *row = rows[pick(model, sizeof(rows) / sizeof(rows[0]))];
    unsigned first = pick(model, HOSTS);

    for (unsigned i = 0; i < HOSTS; i++)
        model->groups[i] = row[(first + i) % HOSTS];
    serve_all(model);
}

static bool matches(const char *word, size_t len, struct weir_slice group)
{
    bool is_start = word[len - 1] == '*';

    len -= is_start;
    return (is_start ? group.len >= len : group.len == len) &&
           memcmp(word, group.ptr, len) == 0;
}

static bool serves(const char *groups, struct weir_slice group)
{
    bool has_some = false, is_some = false;

    for (const char *at = groups; *at != '\0'; at += strspn(at, " ")) {
        size_t len = strcspn(at, " "), skip = *at == '!';

        if (skip > 0 && matches(at + 1, len - 1, group))
            return false;
        has_some = has_some || skip == 0;
        is_some = is_some || (skip == 0 && matches(at, len, group));
        at += len;
    }
    return is_some || !has_some;
}

/* Hosts as sleepers: nil is that all is well. */
static const char wakes[] =
    "local p = 'weir:{t}:' "
    "local function serves(text, g) "
    "  local has, is = false, false "
    "  for w in string.gmatch(text, '%S+') do "
    "    local out = string.sub(w, 1, 1) == '!' "
    "    if out then w = string.sub(w, 2) end "
    "    local stem = string.match(w, '^(.*)%*$') "
    "    local m = w == g or stem and string.sub(g, 1, #stem) == stem "
    "    if out and m then return false end "
    "    if not out then has, is = true, is or m end end "
    "  return is or not has end "
    "local function name(a) "
    "  return ARGV[a] .. (ARGV[a + 1] ~= '' and ' ' .. ARGV[a + 1] or '') end "
    "local names = {} "
    "for a = 1, #ARGV, 2 do names[name(a)] = true end "
    "for _, m in ipairs(redis.call('ZRANGE', p .. 'idle', 0, -1)) do "
    "  if not names[m] then return m .. ' sleeps' end end "
    "for _, k in ipairs({'rot', 'hot'}) do "
    "  local some = redis.call('ZRANGE', p .. k, 0, -1, 'WITHSCORES') "
    "  for i = 1, #some, 2 do "
    "    local g, due, late, comes = some[i], some[i + 1] % 2 ^ 45, false "
    "    for a = 1, #ARGV, 2 do if serves(ARGV[a + 1], g) then "
    "      local at = redis.call('ZSCORE', p .. 'idle', name(a)) "
    "      at = at and tonumber(at) "
    "      if at and at < 0 then at = at + 2 ^ 45 end "
    "      if at and at > due then late = true else comes = true end end end "
    "    if late and not comes then "
    "      return 'everybody sleeps beside ' .. g end end end "
    "return 'well'";

static const char *const names[HOSTS] = {"one", "two", "three"};

/* Who serves a group that has events, and sleeps, comes or was woken, or
 * another one was. */
static void walk(const struct model *model)
{
    bounded_walk();
    EXPECT_STR("well",
               redis_text(proc, "EVAL %s 0 %s %s %s %s %s %s", wakes, names[0],
                          model->groups[0], names[1], model->groups[1],
                          names[2], model->groups[2]));
}

static void change_bounds(struct model *model)
{
    static const uint32_t modes[] = {WEIR__DROP_OLDEST, WEIR__DROP_OLDEST,
                                     WEIR__DROP_NEW, WEIR__REJECT};

    model->options.length = 1 + pick(model, 30);
    model->options.overflow = modes[pick(model, 4)];
    model->options.batch = 1 + pick(model, 8);
    model->options.linger = pick(model, 2) * pick(model, 20);
    model->options.group_ttl = pick(model, 3) == 0 ? 1000 : 0;
    (void)snprintf(model->options.hot, sizeof(model->options.hot), "%s",
                   pick(model, 2) == 0 ? "" : "g1:2 g2");
    serve_all(model);
}

/* To one or two groups, in one call. */
static void add(struct model *model)
{
    struct host *host = model->hosts[pick(model, HOSTS)];
    int answers = host->added + host->failed;
    char group[8];

    for (unsigned groups = 1 + pick(model, 2); groups > 0; groups--) {
        int count = 1 + (int)pick(model, 12);

        if (model->next + count >= NUMBERS)
            break;
        (void)snprintf(group, sizeof(group), "g%u", pick(model, GROUPS));
        events_send(host, group, model->next, model->next + count - 1);
        model->next += count;
        answers += count;
    }
    AWAIT(host->added + host->failed == answers);
}

/* The first run of an event comes after those of all before it. */
static void note_run(struct model *model, unsigned host,
                     const struct weir__run *run)
{
    int number = event_number(run), group = run->group.ptr[1] - '0';

    EXPECT_TRUE(serves(model->groups[host], run->group));
    if (model->has_run[number])
        return;
    model->has_run[number] = true;
    EXPECT_TRUE(number > model->last_first[group]);
    model->last_first[group] = number;
}

static void claim(struct model *model)
{
    unsigned at = pick(model, HOSTS);
    struct host *host = model->hosts[at];

    if (host->runs != NULL)
        return;
    (void)host_claim(host, 1 + pick(model, 40), 300); /* time is the subject */
    for (struct weir__run *run = host->runs; run != NULL; run = run->next)
        note_run(model, at, run);
}

static void settle_one(struct model *model, struct host *host)
{
    struct weir__run *run = host_take(host);

    switch (pick(model, 12)) {
    case 0:
        run->delay_ms = pick(model, 30);
        run->record.counters.attempt++;
        host_settle(host, run, WEIR__OUTCOME_RETRY);
        return;
    case 1:
        run->delay_ms = pick(model, 30);
        host_settle(host, run, WEIR__OUTCOME_SNOOZE);
        return;
    case 2:
        host_settle(host, run, WEIR__OUTCOME_RETURN);
        return;
    case 3:
        run->record.reason = weir__slice_str("failed");
        host_settle(host, run, WEIR__OUTCOME_DEAD);
        return;
    case 4:
        run->record.reason = weir__slice_str("expired");
        host_settle(host, run, WEIR__OUTCOME_DEAD);
        return;
    default:
        host_settle(host, run, WEIR__OUTCOME_DONE);
    }
}

static void settle(struct model *model)
{
    struct host *host = model->hosts[pick(model, HOSTS)];

    if (pick(model, 2) == 0)
        host->store->ops->renew(host->topic, 300);
    while (host->runs != NULL)
        settle_one(model, host);
    host_await_settled(host);
}

static const char *idle_name(unsigned at, const char *groups)
{
    static char text[80];

    (void)snprintf(text, sizeof(text), "%s %s", names[at], groups);
    return text;
}

/* A worker dies and another one takes its name. Who sleeps until leases end may
 * be late for it. */
static void kill_host(struct model *model, unsigned at)
{
    const char *groups = model->groups[at];

    host_close(model->hosts[at]);
    (void)redis_int(proc, "EVAL %s 0 %s",
                    "return redis.call('ZREM', 'weir:{t}:idle', ARGV[1])",
                    groups[0] == '\0' ? names[at] : idle_name(at, groups));
    model->hosts[at] = bounded_open(names[at], options_of(model, at));
    if (pick(model, 2) == 0 && redis_int(proc, "ZCARD weir:{t}:lease") > 0)
        leases_pass();
}

/* What a host has and gets is done. */
static void work_off(struct model *model, unsigned at)
{
    struct host *host = model->hosts[at];

    host_settle_all(host, WEIR__OUTCOME_DONE);
    (void)host_claim(host, 1000, 300); /* time is the subject */
    for (struct weir__run *run = host->runs; run != NULL; run = run->next)
        note_run(model, at, run);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
}

/* Nearly all sleep. */
static void rest(struct model *model)
{
    for (unsigned i = 0; i < 2 * HOSTS; i++)
        work_off(model, i % HOSTS);
}

static void step(struct model *model)
{
    unsigned what = pick(model, 100);

    if (what < 40)
        add(model);
    else if (what < 70)
        claim(model);
    else if (what < 93)
        settle(model);
    else if (what < 97)
        rest(model);
    else if (what < 98)
        change_bounds(model);
    else if (what < 99)
        change_groups(model);
    else
        kill_host(model, pick(model, HOSTS));
    walk(model);
}

/* All of it may have taken less than a lease: none has ended yet. */
static void kill_one_that_has_runs(struct model *model)
{
    unsigned at = 0;

    for (; model->hosts[at]->runs == NULL; at = (at + 1) % HOSTS) {
        add(model);
        claim(model);
    }
    kill_host(model, at);
}

static void drain(struct model *model)
{
    struct patience patience = patience_start(30.);

    while (bounded_count("waiting") > 0 || bounded_count("running") > 0) {
        EXPECT_TRUE(!patience_ended(&patience));
        for (unsigned i = 0; i < HOSTS; i++)
            work_off(model, i);
    }
    walk(model);
}

/* In a world that is open and has nothing. */
static void run_all(uint64_t seed, uint64_t ops)
{
    struct model *model = weir__mem_new(sizeof(*model));

    EXPECT_TRUE(model != NULL);
    model->random = seed;
    model->options = weir__options_default;
    for (int i = 0; i < GROUPS; i++)
        model->last_first[i] = -1;
    for (unsigned i = 0; i < HOSTS; i++) {
        model->groups[i] = "";
        model->hosts[i] = bounded_open(names[i], &model->options);
    }
    for (uint64_t i = 0; i < ops; i++)
        step(model);
    kill_one_that_has_runs(model);
    drain(model);
    EXPECT_TRUE(bounded_count("added") > 0);
    EXPECT_TRUE(bounded_count("crashed") > 0);
    EXPECT_TRUE(bounded_count("overflow") > 0);
    EXPECT_INT(
        0, redis_int(proc, "EXISTS weir:{t}:rot weir:{t}:hot weir:{t}:lease"));
    weir__mem_free(model);
}

/* --- planted faults ------------------------------------------------------- */

static const struct fault {
    const char *name;
    const struct weir__script *script;
    const char *find, *replace; /* what is in the script once */
} faults[] = {
    {"groups of others are taken", &weir__script_bounded_claim,
     "if parts and not parts.is_own(group)", "if false"},
    {"groups of others are offered and taken", &weir__script_bounded_claim,
     "if entry.pattern and serves(served, part) then", "if entry.pattern then"},
    {"what is left out is served", &weir__script_bounded_claim,
     "not is_covered(pattern, served.none)", "true"},
    {"a shorter pattern wins", &weir__script_bounded_add, "return a > b end",
     "return a < b end"},
    {"an exact pattern is looked at as the others", &weir__script_bounded_add,
     "return exact[group] or part_of_start(group)",
     "return part_of_start(group)"},
    {"groups are added to no part", &weir__script_bounded_add,
     "score = digits(parts.score(group, due))\n", ""},
    {"what comes back has no part", &weir__script_bounded_settle,
     "digits(parts and parts.score(group, due) or due)", "digits(due)"},
    {"what is offered leaves its part", &weir__script_bounded_claim,
     "digits(parts and parts.score(group, at) or at)", "digits(at)"},
    {"a new part leaves the groups of the old one", &weir__script_bounded_claim,
     "if not was or is_empty(part) then return", "do return"},
    {"what has no part is not sorted", &weir__script_bounded_claim,
     "local left = MOST_SORTED", "local left = 0"},
    {"any sleeper is woken", &weir__script_bounded_add,
     "serves(known[patterns] or nil, part)", "true"},
    {"no sleeper with patterns is woken", &weir__script_bounded_add,
     "local patterns = string.match(member, ' .*') or ''\n",
     "local patterns = string.match(member, ' .*') or ''\nif patterns ~= '' "
     "then return false end\n"},
    {"one sleeper is woken for all parts", &weir__script_bounded_add,
     "for part, due in pairs(firsts) do",
     "for part, due in pairs({ [next(firsts)] = firsts[next(firsts)] }) do"},
    {"who sleeps is registered for all groups", &weir__script_bounded_claim,
     "fall_asleep(idle, worker, wake_at, floor",
     "fall_asleep(idle, string.match(worker, '%S+'), wake_at, floor"},
};

enum { FAULT_OPS = 1200, FAULT_SEEDS = 40 }; /* one finds most of them */

/* Their place in memory is read only. */
static struct weir__script *open_script(const struct weir__script *script)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)script,
              from = at / page * page;

    EXPECT_INT(0, mprotect((void *)from, at + sizeof(*script) - from,
                           PROT_READ | PROT_WRITE));
    return (struct weir__script *)at;
}

static void plant(const struct fault *fault)
{
    static char text[65536], load[65600], sha1[48];
    struct weir__script *script = open_script(fault->script);
    const char *at = strstr(script->text, fault->find);
    int len;

    if (at == NULL || strstr(at + 1, fault->find) != NULL) {
        printf("  not in the script exactly once: %s\n", fault->find);
        (void)fflush(stdout);
        _exit(2); /* 1 would say that a difference was found */
    }
    len = snprintf(text, sizeof(text), "%.*s%s%.*s", (int)(at - script->text),
                   script->text, fault->replace,
                   (int)(script->text + script->len - at) -
                       (int)strlen(fault->find),
                   at + strlen(fault->find));
    EXPECT_TRUE(len > 0 && (size_t)len < sizeof(text));
    (void)snprintf(sha1, sizeof(sha1), "%s",
                   redis_text(proc, "SCRIPT LOAD %s", text));
    EXPECT_INT(40, strlen(sha1));
    script->load_len =
        (size_t)snprintf(load, sizeof(load),
                         "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s"
                         "\r\n",
                         len, text);
    script->text = text;
    script->len = (size_t)len;
    script->sha1 = sha1;
    script->load = load;
}

static const char *name_of(size_t index)
{
    return faults[index].name;
}

/* --- the world ----------------------------------------------------------- */

#define ADDRESS "10.0.0.1:6379"

static struct sim_redis server;
static struct local *client;

static redisReply *answer(const char *bytes, size_t len)
{
    server_set_time(server.server, sim_redis_now_us(&server));
    local_give(client, bytes, len);
    return local_take(client);
}

struct plan {
    uint64_t seed, ops;
    const struct fault *fault; /* NULL: none */
    bool is_done;
};

static void work(void *arg)
{
    struct plan *plan = arg;

    proc = redis_stand_in(answer);
    world_open_at("redis://" ADDRESS);
    if (plan->fault != NULL)
        plant(plan->fault);
    run_all(plan->seed, plan->ops);
    world_close();
    plan->is_done = true;
}

static void run_world(struct plan plan)
{
    sim_open(plan.seed);
    sim_redis_open(&server, ADDRESS);
    client = local_open(server.server);
    (void)sim_start("host", work, &plan);
    sim_run(sim_now() + 3600 * SIM_S);
    EXPECT_TRUE(plan.is_done);
    local_close(client);
    sim_close();
    sim_redis_close(&server);
}

TEST(every_event_is_accounted_for_and_each_group_is_in_order)
{
    uint64_t seed = number_of("WEIR_SEED", 7);

    printf("  seed %llu\n", (unsigned long long)seed);
    run_world((struct plan){.seed = seed, .ops = number_of("WEIR_OPS", 1500)});
}

static void run_seed(size_t index, uint64_t seed)
{
    run_world((struct plan){seed, FAULT_OPS, &faults[index], false});
}

TEST(planted_faults_of_workers_with_groups_show)
{
    struct fault_search search = {.model = "bounded",
                                  .count = sizeof(faults) / sizeof(faults[0]),
                                  .name = name_of,
                                  .seeds = FAULT_SEEDS,
                                  .run = run_seed};

    EXPECT_INT(0, faults_missed(&search));
}
