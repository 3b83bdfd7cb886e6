-- SPDX-License-Identifier: MIT
-- find: where the entries of a topic are.
--
-- KEYS  meta options
-- Reply { kind ('' = no such topic), key, group, end and body that are stored
--         with it, those of the worker that served it last; '' = none }
local reply = { redis.call('HGET', KEYS[1], 'kind') or '' }
for _, from in ipairs({ KEYS[2], KEYS[1] }) do
  for _, value in ipairs(redis.call('HMGET', from, 'key', 'group', 'end',
                                      'body')) do
    reply[#reply + 1] = value or ''
  end
end
return reply
