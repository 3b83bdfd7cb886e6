-- SPDX-License-Identifier: MIT
-- Whose turn it is, for claim.lua: lanes (lanes.lua) in one order with what has
-- none. A lane counts by the time of its turn, less `ageing` for each level of
-- priority above normal. A key's turn comes when its first job is due, and
-- after a job of it was given at once, behind all that wait by then; jobs
-- without a key have turns by their due times.
--
-- A turn gives one node, or of a larger one the part that is the share of each
-- lane in the room, and what the bounds of the key allow. As many turns as it
-- gave jobs more than one the lane owes to the others.
--
-- In scope are lanes.lua, rate.lua, node.lua, `prefix`, `wait`, `run`, `meta`,
-- `now`, `time_us`, `room`, `options[10]`, which is `lanes` of `meta`, and what
-- is taken, and taken out of `wait` and put back (`taken`, `gone`, `back`).
-- `rules` are `key_rate`, `key_parallel`, `ageing`, as text.
local RECHECK_MS = 1000 -- blocked ones: who runs may have gone unseen
local SEEN_MS = 5000 -- a far token is waited for anew: the rate may be another
local MOST_SEEN = 256 -- lanes of a claim, where the first ones have no job
local function lane_turns(rules, most)
  local turns, seen, keys = prefix .. 'turns', {}, {}
  local queues, queue_of, front = {}, {}, nil
  local puts, looked = 0, {}
  local ageing = number_of(rules.ageing, 60000)
  local parallel = number_of(rules.key_parallel)
  local step, burst = read_rate(rules.key_rate or '')

  local function jobs_of(nodes)
    local jobs = 0
    for _, node in ipairs(nodes) do
      local lo, hi = node_bounds(node)
      jobs = jobs + (lo and hi - lo + 1 or 1)
    end
    return jobs
  end

  -- How many jobs of a key may start.
  local function key_of(lane)
    local key = keys[lane.key]
    if key then return key end
    key = { places = math.huge, tokens = math.huge }
    keys[lane.key] = key
    if lane.key == '' then return key end
    if parallel > 0 then
      local on = prefix .. 'on:' .. lane.key
      local nodes = redis.pcall('ZRANGE', on, '0', '-1')
      key.places = parallel - jobs_of(nodes)
      if key.places <= 0 then
        local gone = {}
        for i, score in ipairs(call('ZMSCORE', run, unpack(nodes))) do
          if not score then gone[#gone + 1] = nodes[i] end
        end
        call_list('ZREM', on, gone)
        key.places = key.places + jobs_of(gone)
      end
    end
    if step then
      local full = tonumber(call('HGET', prefix .. 'rates', lane.key) or 0)
      local all = step * burst
      key.full = min(math.max(full or 0, time_us), time_us + all)
      key.is_changed = key.full < (full or 0) -- by a rate that was lower
      key.tokens = floor((time_us + all - key.full) / step + 1e-6)
    end
    return key
  end

  -- Lanes of a queue come in its order: those of one priority that have a key,
  -- the same that were blocked, or the one without key, each have their own.
  local function put(lane, kind)
    local place = kind .. sub(lane.name, 1, 1)
    local queue = queue_of[place]
    if not queue then
      queue = { first = 1, last = 0 }
      queue_of[place], queues[#queues + 1] = queue, queue
    end
    lane.at, lane.put = lane.turn - lane.ahead, puts
    queue.last = queue.last + 1
    queue[queue.last] = lane
  end

  local function is_before(a, b)
    if a.at ~= b.at then return a.at < b.at end
    if a.put ~= b.put then return a.put < b.put end
    return a.name < b.name
  end

  local function first_lane()
    local lane
    for _, queue in ipairs(queues) do
      local head = queue[queue.first]
      if head and (not lane or is_before(head, lane)) then
        lane, front = head, queue
      end
    end
    return lane
  end

  local function remove_first()
    local lane = front[front.first]
    front[front.first], front.first = nil, front.first + 1
    return lane
  end

  -- The next lanes of a level whose turn has come: one more than may be taken,
  -- as the turn of the one without key is over where its first job is gone.
  local function look(level)
    local from, count = level * LEVEL, looked[level] or 0
    local some = call('ZRANGEBYSCORE', turns, digits(from),
                      '(' .. digits(from + now + 1), 'WITHSCORES', 'LIMIT',
                      digits(count), digits(most + 1))
    looked[level] = count + #some / 2
    for i = 1, #some, 2 do
      local name = some[i]
      local lane = { name = name, key = sub(name, 2), next = 1, given = {},
                     turn = some[i + 1] - from, owes = 0 }
      lane.ahead = (2 - (byte(name) - 48)) * ageing
      lane.level = #some > 2 * most and level or nil -- there may be more
      seen[#seen + 1] = lane
      put(lane, lane.key == '' and 'n' or level == BLOCKED and 'b' or 'k')
    end
  end
  for level = 0, BLOCKED do look(level) end
  local batch = math.max(math.ceil(most / math.max(#seen, 1)), 2)
  local share = math.max(floor(room / math.max(#seen, 1)), 1)

  -- The next nodes of a lane that are due; false: there are none.
  local function fill(lane)
    local key, nodes = prefix .. 'lane:' .. lane.name, {}
    for _ = 1, 4 do
      local due = redis.pcall('ZRANGEBYSCORE', key, '-inf',
                              '(' .. digits(now + 1), 'LIMIT',
                              digits(#lane.given), digits(batch))
      if due.err then return false end
      local scores = due[1] and call('ZMSCORE', wait, unpack(due)) or {}
      local stale = {}
      for i, node in ipairs(due) do
        local score = tonumber(scores[i] or 0) - LANED
        if score >= now + 1 then -- it was put off
          call('ZADD', key, digits(floor(score)), node)
        elseif score >= 0 and node_bounds(node) then
          nodes[#nodes + 1] = { score, node }
        else
          stale[#stale + 1] = node
        end
      end
      call_list('ZREM', key, stale)
      lane.is_open = #due == batch
      if nodes[1] or not lane.is_open then break end
    end
    lane.nodes, lane.next = nodes, 1
    return nodes[1] ~= nil
  end

  -- When the next one counts as due, and whether it is a suspect; nil: no other
  -- one may start.
  local function peek()
    local lane = first_lane()
    while lane do
      local key = key_of(lane)
      local is_free = key.places > 0 and key.tokens > 0
      if lane.owes > 0 and front.first < front.last then
        lane.owes, puts = lane.owes - 1, puts + 1
        put(remove_first(), 'k')
      elseif is_free and lane.nodes and lane.nodes[lane.next] then
        local score = lane.nodes[lane.next][1]
        return lane.at, score > floor(score)
      else
        lane.is_touched = true
        if not is_free or lane.nodes and not lane.is_open or not fill(lane) then
          remove_first()
          if lane.level and not front[front.first] and #seen < MOST_SEEN then
            look(lane.level)
          end
        elseif lane.key == '' then
          lane.turn = floor(lane.nodes[1][1])
          lane.at = lane.turn - lane.ahead
        end
      end
      lane = first_lane()
    end
  end

  -- Its lane has no other turn in this claim.
  local skip = remove_first

  -- The first node that waits in a lane; where it has more than `most` jobs the
  -- largest that begins as it does and has no more. Its other parts wait then.
  local function first_node(lane, most)
    local at = lane.next
    local score, node, is_part = unpack(lane.nodes[at])
    if not is_part then
      lane.given[#lane.given + 1], gone[#gone + 1] = node, node
    end
    lane.next, lane.is_touched = at + 1, true
    local lo, hi = node_bounds(node)
    local seq, last = sub(node, 1, 12), hi
    while hi - lo >= most do
      local half = left_size(lo, hi)
      table.insert(lane.nodes, at + 1,
                   { score, node_name(seq, lo + half, hi), true })
      hi = lo + half - 1
    end
    if hi < last then node = node_name(seq, lo, hi) end
    return score, node, hi - lo + 1
  end

  -- Take `most` jobs of it at most: their score, as in `wait` without LANED,
  -- their node, how many they are, and whether the lane has a key.
  local function take(most)
    local lane = remove_first()
    local key, has_key = key_of(lane), lane.key ~= ''
    most = min(most, key.places, key.tokens, has_key and share or most)
    local score, node, size = first_node(lane, most)
    if has_key then
      lane.turn, lane.owes = now, size - 1
      key.places, key.tokens = key.places - size, key.tokens - size
      if key.full then
        key.full, key.is_changed = key.full + size * step, true
      end
      if parallel > 0 then
        redis.pcall('ZADD', prefix .. 'on:' .. lane.key, '0', node)
      end
    elseif lane.nodes[lane.next] then
      lane.turn = floor(lane.nodes[lane.next][1])
    end
    puts = puts + 1
    put(lane, has_key and 'k' or 'n')
    return score, node, size, has_key
  end

  -- Parts of nodes that were not taken wait.
  local function put_back()
    for _, lane in ipairs(seen) do
      lane.parts = {}
      for i = lane.next, lane.nodes and #lane.nodes or 0 do
        local score, node, is_part = unpack(lane.nodes[i])
        if is_part then
          local due, at = floor(score), #lane.parts
          lane.parts[at + 1], lane.parts[at + 2] = digits(due), node
          back[#back + 1] = due < score and LANED + score or digits(LANED + due)
          back[#back + 1] = node
        end
      end
    end
  end

  -- When the first one that waits in a lane is due.
  local function next_due(lane)
    local known = lane.nodes and lane.nodes[lane.next]
    if known then return known[1] end
    local head = redis.pcall('ZRANGE', prefix .. 'lane:' .. lane.name, '0', '0',
                             'WITHSCORES')
    return tonumber(head[2])
  end

  -- The turn that a lane has from now on; nil: nothing waits in it.
  local function next_turn(lane)
    local due = next_due(lane)
    if not due then return nil end
    local key = key_of(lane)
    due = floor(due)
    if key.places <= 0 then return BLOCKED * LEVEL + now + RECHECK_MS end
    if lane.key ~= '' then
      due = math.max(lane.turn, due)
      if key.tokens <= 0 then
        local token = (key.full - (burst - 1) * step) / 1000
        due = math.max(due, min(math.ceil(token), now + SEEN_MS))
      end
    end
    return (byte(lane.name) - 48) * LEVEL + due
  end

  -- Some, by chance: a key that nobody takes again does not stay.
  local function look_around()
    local some = call('HRANDFIELD', prefix .. 'rates', '-4', 'WITHVALUES')
    for i = 1, #some, 2 do
      if (tonumber(some[i + 1]) or 0) <= time_us then
        call('HDEL', prefix .. 'rates', some[i])
      end
    end
    local of = call('HRANDFIELD', prefix .. 'of', '-2', 'WITHVALUES')
    for i = 1, #of, 2 do
      if call('EXISTS', prefix .. 'p:' .. of[i]) == 0 then
        local on = prefix .. 'on:' .. sub(of[i + 1], 2)
        for _, node in ipairs(redis.pcall('ZRANGE', on, '0', '-1')) do
          if sub(node, 1, 12) == of[i] then
            leave_lane(prefix, node, of[i + 1], now)
          end
        end
        call('HDEL', prefix .. 'of', of[i])
      end
    end
  end

  -- No turn of a level comes before `first`. One that is later than the first
  -- job of its lane, and what may hold that back, is of a clock that was ahead
  -- (honest.lua): it comes now. Returns whether there was one.
  local function heal_turns(from, first)
    --#include honest
    local some = some_beyond(turns, digits(from + first),
                             '(' .. digits(from + LEVEL), now)
    local entries = {}
    for i = 1, #some, 2 do
      local most = now + RECHECK_MS
      if from < BLOCKED * LEVEL then
        most = math.max(next_due({ name = some[i] }) or now, now) +
               (step and SEEN_MS or 0)
      end
      if some[i + 1] - from >= most + 1 then
        entries[#entries + 1] = digits(from + now)
        entries[#entries + 1] = some[i]
      end
    end
    call_list('ZADD', turns, entries)
    return entries[1] ~= nil
  end

  -- Behind the last one, and put_back(). Returns when the next lane has its
  -- turn; nil: none.
  local function finish()
    local entries, over = {}, {}
    for _, lane in ipairs(seen) do
      if lane.is_touched then
        call_list('ZADD', prefix .. 'lane:' .. lane.name, lane.parts)
        call_list('ZREM', prefix .. 'lane:' .. lane.name, lane.given)
        local turn = next_turn(lane)
        if turn then
          entries[#entries + 1] = digits(turn)
          entries[#entries + 1] = lane.name
        else
          over[#over + 1] = lane.name
        end
      end
    end
    call_list('ZADD', turns, entries)
    call_list('ZREM', turns, over)
    for name, key in pairs(keys) do
      if key.is_changed then
        call('HSET', prefix .. 'rates', name, digits(math.ceil(key.full)))
      end
    end
    look_around()
    local was_ahead = options[10] == '2'
    local looks, is_ahead, next_ms = was_ahead or #taken == 0, false, nil
    for level = 0, BLOCKED do
      local from = level * LEVEL
      local head = call('ZRANGEBYSCORE', turns, digits(from),
                        '(' .. digits(from + LEVEL), 'WITHSCORES', 'LIMIT', '0',
                        '1')
      local at = head[2] and floor(head[2] - from)
      if looks and at and at > now and heal_turns(from, at) then
        at, is_ahead = now, true
      end
      if at then next_ms = min(next_ms or math.huge, at) end
    end
    if looks and is_ahead ~= was_ahead then
      call('HSET', meta, 'lanes', is_ahead and '2' or '1')
    end
    return next_ms
  end

  return { peek = peek, skip = skip, take = take, put_back = put_back,
           finish = finish }
end
