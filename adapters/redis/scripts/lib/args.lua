-- SPDX-License-Identifier: MIT
-- A wrong argument is an error before the first write.
local HOUR_MS, MOST_MS, MOST_JOBS = 3600000, 1e13, 1e6
local KINDS = 'delay list sync concurrent stream bounded'

-- An error unless `text` is a whole number in these bounds. tonumber reads it,
-- so 0x10 and blanks around it are accepted; nan is in no bounds.
local function bad_number(name, text, least, most)
  local number = tonumber(text)
  if number and number >= least and number <= most and number % 1 == 0 then
    return nil
  end
  return redis.error_reply(string.format(
    'ERR %s is not a whole number from %.0f to %.0f', name, least, most))
end

-- An error unless there are so many keys and arguments, or more. More than a
-- script reads are left alone.
local function too_few(keys, arguments)
  if (keys == 0 or KEYS[keys]) and (arguments == 0 or ARGV[arguments]) then
    return nil
  end
  return redis.error_reply(string.format(
    'ERR there are fewer than %d keys or %d arguments', keys, arguments))
end

-- An error unless `word` is one of these, between blanks.
local function bad_word(name, word, words)
  if word and not string.find(word, ' ', 1, true) and
     string.find(' ' .. words .. ' ', ' ' .. word .. ' ', 1, true) then
    return nil
  end
  return redis.error_reply(string.format('ERR %s is none of: %s', name, words))
end

-- As server.lua reads it.
local function bad_server(own)
  if own and #own <= 40 and string.find(own, '^%x* ?%d*$') then return nil end
  return redis.error_reply('ERR the server is not hexadecimal digits')
end
