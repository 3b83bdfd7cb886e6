-- SPDX-License-Identifier: MIT
-- Whether a job waits that is due.
--#include laned
local function has_ready(wait, now)
  local till = '(' .. digits(now + 1)
  if call('ZRANGEBYSCORE', wait, '-inf', till, 'LIMIT', '0', '1')[1] then
    return true
  end
  for _, from in ipairs({ MIXED, LANED }) do
    if call('ZRANGEBYSCORE', wait, digits(from), '(' .. digits(from + now + 1),
            'LIMIT', '0', '1')[1] then
      return true
    end
  end
  return false
end
