-- SPDX-License-Identifier: MIT
-- find: of which kind a topic is, and where its entries are. A replica keeps
-- no kind that was lost (topic.lua).
--
-- KEYS  meta options
-- Reply { kind ('' = no such topic), key, group, end and body that are stored
--         with it, those of the worker that served it last; '' = none }
local reply = { redis.call('HGET', KEYS[1], 'kind') or '' }
if reply[1] == '' then
  --#include topic
  local is_kept, kind = pcall(topic_kind, KEYS[1])
  reply[1] = is_kept and kind or ''
end
for _, from in ipairs({ KEYS[2], KEYS[1] }) do
  for _, value in ipairs(redis.call('HMGET', from, 'key', 'group', 'end',
                                      'body')) do
    reply[#reply + 1] = value or ''
  end
end
return reply
