-- SPDX-License-Identifier: MIT
-- Makes `message` honest (message.lua). Nearly always it is honest, and no
-- function is made.
if #message > 18 and struct.unpack('>I8', message, 12) > now + 1000 then
  --#include message
  message = honest(message, now)
end
