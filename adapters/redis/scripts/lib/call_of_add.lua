-- SPDX-License-Identifier: MIT
-- What the call of an add says of itself is looked at first. Ends the script
-- where `topic` or `number` are none. Makes `whole`, which `number` has before
-- the point.
if #topic > 40 or not string.find(topic, '^[%w._:-]+$') then
  return redis.error_reply('ERR the topic is not 1 to 40 of A-Z a-z 0-9 ' ..
                           '. _ : -')
end
local whole = string.match(number, '^(%d+)%.?%d*$')
if not whole or #whole > 15 or #number > 31 then
  return redis.error_reply('ERR the number of the call is none')
end
