-- SPDX-License-Identifier: MIT
-- claim.lua from before mixed packs, as servers got it: for tests with workers
-- of both versions.
local call = redis.call
local byte, char, sub = string.byte, string.char, string.sub
local floor, min = math.floor, math.min
local function node_name(seq, lo, hi)
return seq .. char(48 + floor(lo / 16), 48 + lo % 16,
48 + floor(hi / 16), 48 + hi % 16)
end
local function node_bounds(node)
local lo1, lo0, hi1, hi0, more = byte(node, 13, 17)
if not hi0 or more or lo1 < 48 or lo1 > 63 or lo0 < 48 or lo0 > 63 or
hi1 < 48 or hi1 > 63 or hi0 < 48 or hi0 > 63 then
return nil
end
local lo, hi = (lo1 - 48) * 16 + lo0 - 48, (hi1 - 48) * 16 + hi0 - 48
if lo == 0 or lo == hi then return lo, hi end
local span = 1 -- the power of two that it fits into
while span < hi - lo + 1 do span = span * 2 end
if lo > hi or lo % span > 0 then return nil end
return lo, hi
end
local function left_size(lo, hi)
local size = 1
while size * 2 < hi - lo + 1 do size = size * 2 end
return size
end
local function carve(list, score, seq, lo, hi, without)
local is_gone = without[lo]
for slot = lo + 1, hi do
if without[slot] ~= is_gone then
local half = left_size(lo, hi)
carve(list, score, seq, lo, lo + half - 1, without)
carve(list, score, seq, lo + half, hi, without)
return
end
end
if is_gone then return end
list[#list + 1] = score
list[#list + 1] = node_name(seq, lo, hi)
end
local MOST_STORED = 2 ^ 45 -- a double holds that and the state of a node
local set_aside = 0
local function number_of(value, otherwise)
local number = value and tonumber(value)
if number and number > -MOST_STORED and number < MOST_STORED then
return math.floor(number)
end
return otherwise or 0
end
local function digits(number)
if number > -1e9 and number < 1e9 then return string.format('%d', number) end
if number > 0 and number < MOST_STORED then
return string.format('%d%07d', number / 1e7, number % 1e7)
end
return string.format('%.0f', number)
end
local function table_of(bytes)
local is_sound, value = pcall(cmsgpack.unpack, bytes)
return is_sound and type(value) == 'table' and value or {}
end
local function call_list(command, key, list)
for from = 1, #list, 1000 do
redis.call(command, key, unpack(list, from, math.min(from + 999, #list)))
end
end
local function increment(key, field, by, first)
if by == 0 then return end
local sum = redis.pcall('HINCRBY', key, field, digits(by))
if type(sum) == 'number' then
if sum < MOST_STORED and sum > (first and 0 or -MOST_STORED) then
return sum
end
elseif not string.find(sum.err, 'integer', 1, true) and
not string.find(sum.err, 'overflow', 1, true) then
return redis.call('HINCRBY', key, field, digits(by)) -- ends the script
end
set_aside = set_aside + 1
sum = (first or 0) + by
redis.call('HSET', key, field, digits(sum))
return sum
end
local function tell_aside(meta, reply)
if set_aside == 0 then return end
increment(meta, 'dropped', set_aside)
reply[#reply + 1] = set_aside
end
local function token_number(token)
return #token < 15 and string.find(token, '^%d+$') and tonumber(token) or nil
end
local function us_until(ms, time_us)
return math.min(math.max(ms * 1000 - time_us, 0), 2 ^ 53)
end
local function token_of_time(now)
return math.min((now - 1577836800000) * 32, MOST_STORED - 2 ^ 40)
end
local function meet_server(meta, lease, field, known, own, lease_ms, now)
local GRACE_LEAST, GRACE_MOST = 1000, 5000 -- ms
local LOST_A_MS, LOST_LEAST, LOST_MOST = 512, 2 ^ 19, 2 ^ 26
local id, till = string.match(known or '', '^(%x+) ?(%d*)$')
local floor
own, floor = string.match(own, '^(%x*) ?(%d*)$')
till, floor = number_of(till), number_of(floor)
local was = redis.call('HMGET', meta, field, 'met')
local last, met = number_of(was[1]), number_of(was[2])
local is_new = own ~= '' and own ~= id
if is_new then
local lost = LOST_MOST
if met > 0 then
lost = math.min(math.max((now - met) * LOST_A_MS, LOST_LEAST), LOST_MOST)
end
lost = math.floor(math.min(lost, (MOST_STORED - last) / 4096))
floor = math.max(floor, last + lost, token_of_time(now))
end
if is_new or floor > last or own == id and till > 0 and till <= now then
redis.call('ZREM', lease, '') -- as full.lua says
end
if floor > last then -- where jobs are counted what is skipped was given back
redis.call('HSET', meta, field, digits(floor))
if field == 'claimed' then increment(meta, 'returned', floor - last) end
end
if not is_new then
if till > now and till <= now + GRACE_MOST then return till end
if own == id and till > 0 then redis.call('HSET', meta, 'server', own) end
return 0
end
till = 0
if id then -- else nothing was leased, or by an older weir
till = now + math.floor(math.min(math.max(lease_ms / 2, GRACE_LEAST),
GRACE_MOST))
own = own .. ' ' .. digits(till)
end
redis.call('HSET', meta, 'server', own, 'met', digits(now))
return till
end
local function first_token(now) return token_of_time(now) + 2 ^ 26 end
local MOST_ENDED = 127
local function bounded_score(score)
return min(math.max(tonumber(score), 0), MOST_STORED)
end
local function suspicion(score)
local number = bounded_score(score)
local state = (number - floor(number)) * 256
return floor(state / 2), state % 2 >= 1
end
local function suspect_score(whole, ended)
return whole + ended / 128
end
local BUSY, FAR, MOST_IDLE = 2 ^ 45, 2 ^ 44, 1000
local function publish(worker, topic)
local channel = string.match(KEYS[1], '^[^{]*') .. 'wake:' .. worker
local received = redis.pcall('PUBLISH', channel, topic)
return type(received) == 'number' and received or 0
end
local function fall_asleep(idle, worker, wake_at, is_busy)
local score = wake_at or '+inf'
if is_busy then score = math.min(wake_at or FAR, FAR) - BUSY end
if type(score) == 'number' then score = digits(score) end
local is_new = redis.pcall('ZADD', idle, score, worker)
if type(is_new) ~= 'number' then -- a full server lets it sleep, too
call('ZREM', idle, '') -- as full.lua says
is_new = call('ZADD', idle, score, worker)
end
if is_new == 1 and call('ZCARD', idle) > MOST_IDLE then
call('ZREM', idle, call('ZRANDMEMBER', idle))
end
end
local function last_sleeper(idle, due)
local last = redis.pcall('ZRANGE', idle, '-1', '-1', 'WITHSCORES')
local at = tonumber(last[2] or '-inf')
if at >= 0 and at <= due then
last = call('ZREVRANGEBYSCORE', idle, '(0', '-inf', 'WITHSCORES', 'LIMIT',
'0', '1')
at = tonumber(last[2] or '-inf')
end
if at < 0 then at = at + BUSY end
return at > due and last[1] or nil
end
local function wake_one(idle, topic, due, seq)
for _ = 1, MOST_IDLE do
local worker = last_sleeper(idle, due)
if not worker then return false end
call('ZREM', idle, worker)
if publish(worker, seq and topic .. ' ' .. seq or topic) > 0 then
return true
end
end
return false
end
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local wait, run, lease, ids, meta, idle = unpack(KEYS)
local room, most_nodes = tonumber(ARGV[1]), tonumber(ARGV[3])
local worker, flags = ARGV[4], tonumber(ARGV[5])
local own = ARGV[7] or ''
local options = call('HMGET', meta, 'paused', 'mark', 'revision', 'kind',
'server')
local stored = options[4]
if not stored then
local function topic_kind(meta, ids, kind)
local stored = call('HGET', meta, 'kind')
if stored then return stored end
call('HSET', meta, 'kind', kind)
call('HSET', ids, '!', string.rep('-', 65))
return kind
end
stored = topic_kind(meta, ids, ARGV[6])
end
if stored ~= ARGV[6] then return { -1, stored } end
local mark_end = number_of(options[2], -1) + 1
local grace = 0
if options[5] ~= own then
grace = meet_server(meta, lease, 'claimed', options[5], own,
tonumber(ARGV[2]), now)
end
local function expire(token)
local number = token_number(token)
if not number then
set_aside = set_aside + 1
call('ZREM', lease, token)
return
end
local held = call('ZRANGEBYSCORE', run, token, '(' .. digits(number + 1),
'WITHSCORES', 'LIMIT', '0', '256')
local entries, names, jobs, crashed = {}, {}, 0, 0
for i = 1, #held, 2 do
local lo, hi = node_bounds(held[i])
names[#names + 1] = held[i]
if lo then
local ended, started = suspicion(held[i + 1])
jobs = jobs + hi - lo + 1
if ended == 0 or started then -- else nobody knows that it did anything
ended = min(ended + 1, MOST_ENDED)
crashed = crashed + hi - lo + 1
end
entries[#entries + 1] = suspect_score(now, ended)
entries[#entries + 1] = held[i]
else
set_aside = set_aside + 1
end
end
if jobs > 0 then call('ZCARD', wait) end -- as types.lua says
if #names > 0 then call('ZREM', run, unpack(names)) end
if jobs > 0 then
call('ZADD', wait, unpack(entries))
increment(meta, 'returned', jobs)
increment(meta, 'crashed', crashed)
if now < mark_end then increment(meta, 'ready', jobs) end
end
if #held < 512 then call('ZREM', lease, token) end
end
local expired = grace == 0 and
call('ZRANGEBYSCORE', lease, '-inf', '(' .. digits(now),
'LIMIT', '0', '2') or {}
for i = 1, #expired do expire(expired[i]) end
local time_us = time[1] * 1000000 + time[2]
local state = number_of(options[3]) * 2
if options[1] then -- asleep until it is resumed, whatever is added
if worker ~= '' then fall_asleep(idle, worker, '-inf') end
local reply = { time_us, 0, -1, 0, state + 1 }
tell_aside(meta, reply)
return reply
end
local due = call('ZRANGEBYSCORE', wait, '-inf', '(' .. digits(now + 1),
'WITHSCORES', 'LIMIT', '0', digits(min(room, most_nodes)))
local reply, entries, back = { time_us, 0, -1, 0, state }, {}, {}
local jobs, used, ripe = 0, 0, 0
local function take(score, name, size)
local due_ms = floor(score)
reply[#reply + 1] = name
reply[#reply + 1] = score * 256
entries[#entries + 1] = score - due_ms
entries[#entries + 1] = name
jobs = jobs + size
end
local function take_singles(score, seq, lo, hi)
local taken = {}
for slot = lo, min(hi, lo + room - jobs - 1) do
take(score, node_name(seq, slot, slot), 1)
taken[slot] = true
end
carve(back, score, seq, lo, hi, taken)
end
local function take_part(score, seq, lo, hi)
while jobs < room do
local half = left_size(lo, hi)
if half > room - jobs then
back[#back + 1] = score
back[#back + 1] = node_name(seq, lo + half, hi)
hi = lo + half - 1
else
take(score, node_name(seq, lo, lo + half - 1), half)
lo = lo + half
end
end
back[#back + 1] = score
back[#back + 1] = node_name(seq, lo, hi)
end
for i = 1, #due, 2 do
local name, score, had = due[i], bounded_score(due[i + 1]), jobs
local lo, hi = node_bounds(name)
local size = lo and hi - lo + 1
if not size then
set_aside = set_aside + 1
elseif size > 1 and score > floor(score) then
take_singles(score, sub(name, 1, 12), lo, hi)
elseif size <= room - jobs then
take(score, name, size)
elseif jobs * 2 < room then
take_part(score, sub(name, 1, 12), lo, hi)
else
break -- not worth a split: the next claim takes it whole
end
used = used + 1
if score < mark_end then ripe = ripe + jobs - had end
if jobs == room then break end
end
if used > 0 then
if jobs > 0 then call('ZCARD', run) end -- as types.lua says
call('ZREMRANGEBYRANK', wait, '0', digits(used - 1))
call_list('ZADD', wait, back)
end
if jobs > 0 then
local token = increment(meta, 'claimed', jobs, first_token(now))
local text = digits(token)
for i = 1, #entries, 2 do
entries[i] = entries[i] == 0 and text or token + entries[i]
end
call_list('ZADD', run, entries)
call('ZADD', lease, digits(now + ARGV[2]), text)
increment(meta, 'ready', -ripe)
reply[2] = token
reply[4] = jobs
end
local head = call('ZRANGE', wait, '0', '0', 'WITHSCORES')
local expiry = call('ZRANGE', lease, '0', '0', 'WITHSCORES')
local due_at = head[1] and floor(tonumber(head[2]))
local wake_at = due_at
if expiry[1] then
wake_at = min(wake_at or math.huge,
math.max(tonumber(expiry[2]) + 1, grace))
end
if wake_at then reply[3] = us_until(wake_at, time_us) end
local asleep = jobs == 0 or (jobs < room and reply[3] ~= 0)
if asleep and worker ~= '' then
fall_asleep(idle, worker, wake_at, jobs > 0 or flags >= 2)
elseif not asleep then -- what it leaves is for the next worker
if flags % 2 == 1 then call('ZREM', idle, worker) end
local topic = string.match(wait, '{(.*)}')
if due_at then wake_one(idle, topic, math.max(due_at, now)) end
end
tell_aside(meta, reply)
return reply
