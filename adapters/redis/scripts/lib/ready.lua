-- SPDX-License-Identifier: MIT
-- Whether a job waits that is due.
local function has_ready(wait, now)
  local till = '(' .. digits(now + 1)
  if call('ZRANGEBYSCORE', wait, '-inf', till, 'LIMIT', '0', '1')[1] then
    return true
  end
  return call('ZRANGEBYSCORE', wait, digits(MIXED),
              '(' .. digits(MIXED + now + 1), 'LIMIT', '0', '1')[1] ~= nil
end
