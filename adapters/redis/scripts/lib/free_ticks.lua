-- SPDX-License-Identifier: MIT
-- Ticks of schedules (tick.lua) use no token: a claim that finds none left
-- takes the ticks that are due all the same, up to `most` jobs. They are not in
-- `held`, so that their verdicts bring no token back (tokens.lua). Workers put
-- each tick into a pack of its own, where it is found here; of more than FEW
-- schedules once in APART_MS. Returns when the next tick is due, or when to
-- look again; nil: none waits. In scope is what claim.lua takes, and `free`,
-- which counts these ticks.
local function take_ticks(most)
  local FEW, APART_MS = 64, 100
  local cron = sub(wait, 1, -5) .. 'cron'
  local count = redis.pcall('HLEN', cron)
  if type(count) ~= 'number' or count == 0 then return nil end
  if count > FEW then
    local since = now - number_of(call('HGET', meta, 'ticks_ms'))
    if since >= 0 and since < APART_MS then return now - since + APART_MS end
    redis.pcall('HSET', meta, 'ticks_ms', digits(now)) -- a full server, too
  end
  local nodes, is_taken, next_ms = {}, {}, nil
  local names = call('HKEYS', cron)
  for i = 1, #names do names[i] = names[i] .. '@next' end
  for _, seq in ipairs(call('HMGET', ids, unpack(names))) do
    if seq then nodes[#nodes + 1] = node_name(seq, 0, 0) end
  end
  if not nodes[1] then return nil end
  for _, name in ipairs(taken) do is_taken[name] = true end
  for i, score in ipairs(call('ZMSCORE', wait, unpack(nodes))) do
    local name, due_ms = nodes[i], floor(tonumber(score or MIXED))
    if due_ms > now and due_ms < MIXED then
      next_ms = min(next_ms or due_ms, due_ms)
    elseif due_ms <= now and jobs < most and not is_taken[name] then
      region, free, gone[#gone + 1] = 0, free + 1, name
      if due_ms < mark_end then ripe = ripe + 1 end
      take(tonumber(score), name, 1)
      taken[#taken], taken[#taken - 1] = nil, nil
    end
  end
  return next_ms
end
