-- SPDX-License-Identifier: MIT
-- Whose turn it is, for claim.lua: lanes (lanes.lua) in one order with what has
-- none. A lane counts by the time of its turn, less `ageing` for each level of
-- priority above normal. A key's turn comes when its first job is due, and
-- after a job of it was given at once, behind all that wait by then; jobs
-- without a key have turns by their due times.
--
-- In scope are lanes.lua, rate.lua, `prefix`, `wait`, `run`, `now`,
-- `time_us`. `rules` are `key_rate`, `key_parallel`, `ageing`, as text.
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
      key.places = parallel - #nodes
      if key.places <= 0 then
        local gone = {}
        for i, score in ipairs(call('ZMSCORE', run, unpack(nodes))) do
          if not score then gone[#gone + 1] = nodes[i] end
        end
        call_list('ZREM', on, gone)
        key.places = key.places + #gone
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
                     turn = some[i + 1] - from }
      lane.ahead = (2 - (byte(name) - 48)) * ageing
      lane.level = #some > 2 * most and level or nil -- there may be more
      seen[#seen + 1] = lane
      put(lane, lane.key == '' and 'n' or level == BLOCKED and 'b' or 'k')
    end
  end
  for level = 0, BLOCKED do look(level) end
  local batch = math.max(math.ceil(most / math.max(#seen, 1)), 2)

  -- The next nodes of a lane that are due; false: there are none.
  local function fill(lane)
    local key, nodes = prefix .. 'lane:' .. lane.name, {}
    for _ = 1, 4 do
      local due = redis.pcall('ZRANGEBYSCORE', key, '-inf',
                              '(' .. digits(now + 1), 'LIMIT',
                              digits(#lane.given), digits(batch))
      if due.err then return false end
      local scores = due[1] and call('ZMSCORE', wait, unpack(due)) or {}
      local gone = {}
      for i, node in ipairs(due) do
        local score = tonumber(scores[i] or 0) - LANED
        if score >= now + 1 then -- it was put off
          call('ZADD', key, digits(floor(score)), node)
        elseif score >= 0 then
          nodes[#nodes + 1] = { score, node }
        else
          gone[#gone + 1] = node
        end
      end
      call_list('ZREM', key, gone)
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
      if is_free and lane.nodes and lane.nodes[lane.next] then
        local score = lane.nodes[lane.next][1]
        return lane.at, score > floor(score)
      end
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
      lane = first_lane()
    end
  end

  -- Its lane has no other turn in this claim.
  local skip = remove_first

  -- Take it: its score, as in `wait` without LANED, its node, and whether its
  -- lane has a key.
  local function take()
    local lane = remove_first()
    local key, node = key_of(lane), lane.nodes[lane.next]
    lane.next, lane.given[#lane.given + 1] = lane.next + 1, node[2]
    lane.is_touched = true
    if lane.key ~= '' then
      lane.turn = now
      key.places, key.tokens = key.places - 1, key.tokens - 1
      if key.full then
        key.full, key.is_changed = key.full + step, true
      end
      if parallel > 0 then
        redis.pcall('ZADD', prefix .. 'on:' .. lane.key, '0', node[2])
      end
    elseif lane.nodes[lane.next] then
      lane.turn = floor(lane.nodes[lane.next][1])
    end
    puts = puts + 1
    put(lane, lane.key == '' and 'n' or 'k')
    return node[1], node[2], lane.key ~= ''
  end

  -- The turn that a lane has from now on; nil: nothing waits in it.
  local function next_turn(lane)
    local head = redis.pcall('ZRANGE', prefix .. 'lane:' .. lane.name, '0', '0',
                             'WITHSCORES')
    if not head[1] then return nil end
    local key, due = key_of(lane), floor(tonumber(head[2]))
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
        leave_lane(prefix, of[i] .. '0000', of[i + 1], now)
        call('HDEL', prefix .. 'of', of[i])
      end
    end
  end

  -- Behind the last one. Returns when the next lane has its turn; nil: none.
  local function finish()
    for _, lane in ipairs(seen) do
      if lane.is_touched then
        call_list('ZREM', prefix .. 'lane:' .. lane.name, lane.given)
        local turn = next_turn(lane)
        if turn then
          call('ZADD', turns, digits(turn), lane.name)
        else
          call('ZREM', turns, lane.name)
        end
      end
    end
    for name, key in pairs(keys) do
      if key.is_changed then
        call('HSET', prefix .. 'rates', name, digits(math.ceil(key.full)))
      end
    end
    look_around()
    local next_ms
    for level = 0, BLOCKED do
      local from = level * LEVEL
      local head = call('ZRANGEBYSCORE', turns, digits(from),
                        '(' .. digits(from + LEVEL), 'WITHSCORES', 'LIMIT', '0',
                        '1')
      if head[2] then
        next_ms = min(next_ms or math.huge, floor(head[2] - from))
      end
    end
    return next_ms
  end

  return { peek = peek, skip = skip, take = take, finish = finish }
end
