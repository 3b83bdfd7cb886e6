/* SPDX-License-Identifier: MIT */
#include "tests/redis/bounded/bounded_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

struct host *bounded_open(const char *worker,
                          const struct weir__options *options)
{
    struct host *host = host_open_kind(worker, "bounded");
    int wakes = host->wakes;

    host_serve_with(host, options);
    host->wakes = wakes; /* those of its channel, not that of new groups */
    return host;
}

static void add(struct host *host, const char *group, int number)
{
    uint8_t body[] = {0xcd, (uint8_t)(number >> 8), (uint8_t)number};
    struct weir__record record = {.body = {body, sizeof(body)}};
    struct weir__new_job job = {.group = weir__slice_str(group),
                                .record = &record};

    EXPECT_INT(WEIR_OK,
               host->store->ops->add(host->topic, &job, host_added, host));
}

void events_send(struct host *host, const char *group, int from, int to)
{
    for (int i = from; i <= to; i++)
        add(host, group, i);
}

void events_add(struct host *host, const char *group, int from, int to)
{
    int answers = host->added + host->failed;

    events_send(host, group, from, to);
    AWAIT(host->added + host->failed == answers + to - from + 1);
}

void event_add(struct host *host, const char *group, int number)
{
    events_add(host, group, number, number);
}

int event_number(const struct weir__run *run)
{
    const uint8_t *body = run->record.body.ptr;

    EXPECT_INT(3, run->record.body.len);
    return body[1] << 8 | body[2];
}

const char *events_text(const struct host *host)
{
    static char text[4000];
    size_t len = 0;
    const struct weir__run *run = host->runs;

    text[0] = '\0';
    while (run != NULL) {
        const struct weir__run *first = run, *last = run;

        while (last->next != NULL &&
               weir__slice_equal(last->next->group, first->group) &&
               event_number(last->next) == event_number(last) + 1)
            last = last->next;
        len += (size_t)snprintf(
            text + len, sizeof(text) - len, "%.*s:%d", (int)first->group.len,
            (const char *)first->group.ptr, event_number(first));
        if (last != first)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "-%d",
                                    event_number(last));
        len += (size_t)snprintf(text + len, sizeof(text) - len, " ");
        EXPECT_TRUE(len < sizeof(text));
        run = last->next;
    }
    return text;
}

long long bounded_count(const char *field)
{
    const char *text = redis_text(proc, "HGET weir:{t}:meta %s", field);

    return text == NULL ? 0 : strtoll(text, NULL, 10);
}

/* In Lua, as the server sees it; nil is that all is well. */
static const char walker[] =
    "local p = 'weir:{t}:' "
    "local waiting, running = 0, 0 "
    "local function places(g) "
    "  local n = 0 "
    "  for _, k in ipairs({'rot', 'hot', 'lease'}) do "
    "    if redis.call('ZSCORE', p .. k, g) then n = n + 1 end end "
    "  return n end "
    "for _, key in ipairs(redis.call('KEYS', p .. 'g:*')) do "
    "  local g = string.sub(key, #p + 3) "
    "  waiting = waiting + redis.call('LLEN', key) "
    "  if places(g) ~= 1 then return g .. ' is in ' .. places(g) end end "
    "for _, key in ipairs(redis.call('KEYS', p .. 'l:*')) do "
    "  local g = string.sub(key, #p + 3) "
    "  running = running + redis.call('LLEN', key) "
    "  if not redis.call('ZSCORE', p .. 'lease', g) then "
    "    return g .. ' has no lease' end "
    "  if not string.match(redis.call('HGET', p .. 'out', g) or '', '^%d') "
    "    then return g .. ' has no token' end end "
    "local parts = redis.call('HGET', p .. 'meta', 'parts') "
    "local words = {} "
    "for w in string.gmatch(parts or '', '%S+') do words[#words + 1] = w end "
    "local function longest(g) "
    "  local best, at = '', 0 "
    "  for i, w in ipairs(words) do "
    "    w = string.match(w, '^(.+)@%d+$') or '-' "
    "    local stem = string.match(w, '^(.*)%*$') "
    "    if w == g or stem and string.sub(g, 1, #stem) == stem and "
    "        best ~= g and #w > #best then best, at = w, i end end "
    "  return at end "
    "for _, k in ipairs({'rot', 'hot'}) do "
    "  for _, g in ipairs(redis.call('ZRANGE', p .. k, 0, -1)) do "
    "    local at = math.floor(redis.call('ZSCORE', p .. k, g) / 2 ^ 45) "
    "    if at ~= longest(g) and redis.call('ZCARD', p .. k) < 200 then "
    "      return g .. ' is in part ' .. at .. ' of ' .. parts end end "
    "  for _, g in ipairs(redis.call('ZRANGE', p .. k, 0, -1)) do "
    "    if redis.call('EXISTS', p .. 'g:' .. g) == 0 then "
    "      return g .. ' is empty on ' .. k end end end "
    "for _, g in ipairs(redis.call('ZRANGE', p .. 'lease', 0, -1)) do "
    "  if redis.call('EXISTS', p .. 'l:' .. g) == 0 then "
    "    return g .. ' is leased and empty' end end "
    "local m = function(f) "
    "  return tonumber(redis.call('HGET', p .. 'meta', f) or 0) end "
    "if m('waiting') ~= waiting then "
    "  return 'waiting ' .. m('waiting') .. ', not ' .. waiting end "
    "if m('running') ~= running then "
    "  return 'running ' .. m('running') .. ', not ' .. running end "
    "local rest = m('added') - m('done') - m('failed') - m('overflow') - "
    "  m('age') - m('ttl') - m('waiting') - m('running') "
    "if rest ~= 0 then return 'the counts leave ' .. rest end "
    "return 'well'";

void bounded_walk(void)
{
    EXPECT_STR("well", redis_text(proc, "EVAL %s 0", walker));
}
