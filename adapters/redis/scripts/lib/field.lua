-- SPDX-License-Identifier: MIT
-- What the option `unique` of a topic finds in a body, as weir itself does:
-- the text, without a byte 0, or the whole number at a path such as
-- body.items.0.sku. An error where the body holds what Lua cannot read.

-- Bytes of numbers as a decimal number: those of 64 bits are more than Lua's.
local function decimal(high, low, is_negative)
  local limbs, text = { high / 65536, high, low / 65536, low }, ''
  for i = 1, 4 do limbs[i] = math.floor(limbs[i]) % 65536 end
  if is_negative then
    local carry = 1
    for i = 4, 1, -1 do
      local limb = 65535 - limbs[i] + carry
      limbs[i], carry = limb % 65536, math.floor(limb / 65536)
    end
  end
  for _ = 1, 3 do
    local rest = 0
    for i = 1, 4 do
      rest = rest * 65536 + limbs[i]
      limbs[i], rest = math.floor(rest / 1e7), rest % 1e7
    end
    text = string.format('%07d', rest) .. text
  end
  text = string.gsub(text, '^0+', '')
  return (is_negative and '-' or '') .. text
end

-- Where the value behind this one begins, and this one. Lua knows no bin.
local function read_value(body, at)
  local head, len = string.byte(body, at + 1) or 0, nil
  if head < 196 or head > 198 then return cmsgpack.unpack_one(body, at) end
  if head == 196 then len, at = string.byte(body, at + 2), at + 2 end
  if head == 197 then len, at = struct.unpack('>I2', body, at + 2), at + 3 end
  if head == 198 then len, at = struct.unpack('>I4', body, at + 2), at + 5 end
  return at + len, string.sub(body, at + 1, at + len)
end

-- Where the child of this name begins, counted from 0; nil: it has none.
local function child_at(body, at, name)
  local head, count = string.byte(body, at + 1), 0
  if not head then return nil end
  local is_map = head < 144 or head >= 222
  if head >= 128 and head < 160 then
    count, at = head % 16, at + 1
  elseif head == 220 or head == 222 then
    count, at = struct.unpack('>I2', body, at + 2), at + 3
  elseif head == 221 or head == 223 then
    count, at = struct.unpack('>I4', body, at + 2), at + 5
  else
    return nil
  end
  local position = not is_map and string.find(name, '^%d+$') and
                   (name == '0' or string.byte(name) ~= 48) and tonumber(name)
  if not is_map and (not position or position >= count) then return nil end
  for i = 0, is_map and count - 1 or position - 1 do
    if is_map then
      local kind, key = string.byte(body, at + 1), nil
      at, key = read_value(body, at)
      if key == name and (kind < 196 or kind > 198) then return at end
    end
    at = read_value(body, at)
  end
  return not is_map and at or nil
end

-- Nil: there is no such place, or what is there is no key.
local function field_of(body, path)
  local at = 0
  for name in string.gmatch(string.sub(path, 6), '[^.]+') do
    at = child_at(body, at, name)
    if not at then return nil end
  end
  local head = string.byte(body, at + 1)
  if head == 207 or head == 211 then
    local high, low = struct.unpack('>I4I4', body, at + 2)
    return decimal(high, low, head == 211 and high >= 2 ^ 31)
  end
  if head < 128 or head >= 160 and head < 192 or head >= 196 and head < 199 or
     head >= 204 and head < 220 or head >= 224 then
    local _, value = read_value(body, at)
    if type(value) == 'number' then value = string.format('%.0f', value) end
    return value ~= '' and not string.find(value, '%z') and value or nil
  end
end
