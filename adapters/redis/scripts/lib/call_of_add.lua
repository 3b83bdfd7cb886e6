-- SPDX-License-Identifier: MIT
-- What the call of an add says of itself is looked at first. Ends the script
-- where `topic` or `number` are none.
if #topic > 40 or not string.find(topic, '^[%w._:-]+$') then
  return redis.error_reply('ERR the topic is not 1 to 40 of A-Z a-z 0-9 ' ..
                           '. _ : -')
end
if #number > 15 or not string.find(number, '^%d+$') then
  return redis.error_reply('ERR the number of the call is none')
end
