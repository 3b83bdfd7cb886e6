-- SPDX-License-Identifier: MIT
-- find: where the entries of a topic are.
--
-- KEYS  meta options
-- Reply { kind ('' = no such topic), key and group that are stored with it, key
--         and group of the worker that served it last; '' = none }
local options = redis.call('HMGET', KEYS[2], 'key', 'group')
local served = redis.call('HMGET', KEYS[1], 'key', 'group')
return { redis.call('HGET', KEYS[1], 'kind') or '', options[1] or '',
         options[2] or '', served[1] or '', served[2] or '' }
