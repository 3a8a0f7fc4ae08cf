-- NDN (Packet Format 0.3), with gradients as contents.

local ndn = protocol("ndn", "Named Data Networking")
local TLV = NUMBERS
local ndn_type = ProtoField.uint8("gradbed.ndn.type", "Packet", base.DEC, { [TLV.INTEREST] = "Interest", [TLV.DATA] = "Data" })
local ndn_name = ProtoField.string("gradbed.ndn.name", "Name")
local ndn_component = ProtoField.string("gradbed.ndn.component", "Component")
local ndn_version = ProtoField.uint64("gradbed.ndn.version", "Version")
local ndn_segment = ProtoField.uint64("gradbed.ndn.segment", "Segment")
local ndn_prefix = ProtoField.bool("gradbed.ndn.can_be_prefix", "Can be prefix")
local ndn_fresh = ProtoField.bool("gradbed.ndn.must_be_fresh", "Must be fresh")
local ndn_nonce = ProtoField.uint32("gradbed.ndn.nonce", "Nonce", base.HEX)
local ndn_lifetime = ProtoField.uint64("gradbed.ndn.lifetime_ms", "Lifetime (ms)")
local ndn_hops = ProtoField.uint8("gradbed.ndn.hop_limit", "Hop limit")
local ndn_content = ProtoField.bytes("gradbed.ndn.content", "Content")
local ndn_other = ProtoField.bytes("gradbed.ndn.element", "Element")
local ndn_loss = ProtoField.double("gradbed.ndn.loss", "Loss")
local ndn_scale = ProtoField.int8("gradbed.ndn.scale", "Scale")
local ndn_last = ProtoField.bool("gradbed.ndn.last_version", "Last version", 16, nil, 1)
adding(ndn, {
  ndn_type, ndn_name, ndn_component, ndn_version, ndn_segment, ndn_prefix, ndn_fresh, ndn_nonce, ndn_lifetime,
  ndn_hops, ndn_content, ndn_other, ndn_loss, ndn_scale, ndn_last,
})
local ndn_lanes = lanes_of(ndn, "gradbed.ndn")

-- A type or length at a place, and the place after it; nil where it is cut off.
local function number_at(tvb, at)
  if at >= tvb:len() then return nil end
  local first = tvb(at, 1):uint()
  if first < 253 then return first, at + 1 end
  local bytes = first == 253 and 2 or first == 254 and 4 or 8
  if bytes == 8 or at + 1 + bytes > tvb:len() then return nil end
  return tvb(at + 1, bytes):uint(), at + 1 + bytes
end

-- Type, value and the place after it.
local function element_at(tvb, at)
  local kind, length
  kind, at = number_at(tvb, at)
  if not kind then return nil end
  length, at = number_at(tvb, at)
  if not length or at + length > tvb:len() then return nil end
  return kind, length, at, at + length
end

local function is_integer(length) return length == 1 or length == 2 or length == 4 or length == 8 end

local function integer(range)
  return range:len() == 8 and range:uint64() or UInt64(range:uint())
end

local function component_text(kind, range)
  local text = ""
  if (kind == TLV.VERSION or kind == TLV.SEGMENT) and is_integer(range:len()) then
    return (kind == TLV.VERSION and "v=" or "seg=") .. tostring(integer(range))
  end
  for place = 0, range:len() - 1 do
    local byte = range(place, 1):uint()
    local letter = string.char(byte)
    text = text .. (letter:match("[%w%-%._~>]") and letter or string.format("%%%02X", byte))
  end
  return kind == TLV.GENERIC and text or kind .. "=" .. text
end

-- The name as a URI; whether its last two components are a version and a segment.
local function add_name(tree, tvb, first, bytes)
  local found, at, text = {}, first, ""
  while at < first + bytes do
    local kind, length, value, after = element_at(tvb, at)
    if not kind then return nil end
    local range = length > 0 and tvb(value, length) or nil
    local words = range and component_text(kind, range) or ""
    text = text .. "/" .. words
    found[#found + 1] = { kind = kind, words = words, whole = tvb(at, after - at), value = range }
    at = after
  end
  local item = tree:add(ndn_name, tvb(first, bytes), text)
  for _, each in ipairs(found) do
    local branch = item:add(ndn_component, each.whole, each.words)
    if each.value and is_integer(each.value:len()) and (each.kind == TLV.VERSION or each.kind == TLV.SEGMENT) then
      branch:add(each.kind == TLV.VERSION and ndn_version or ndn_segment, each.value, integer(each.value))
    end
  end
  local last, before = found[#found], found[#found - 1]
  return text, before and before.kind == TLV.VERSION and last.kind == TLV.SEGMENT
end

local CONTENT_HEAD_BYTES, MOST_SCALES = 16, 4

local function add_content(tree, range, is_gradient)
  local item = tree:add(ndn_content, range)
  if not is_gradient or range:len() < CONTENT_HEAD_BYTES or range:len() % LANE_BYTES ~= 0 then return end
  item:add(ndn_loss, range(0, 8))
  for number = 0, MOST_SCALES - 1 do item:add(ndn_scale, range(8 + number, 1)) end
  item:add(ndn_last, range(12, 2))
  if range:len() > CONTENT_HEAD_BYTES then ndn_lanes(item, range(CONTENT_HEAD_BYTES):tvb()) end
end

local function add_element(tree, kind, whole, range, is_gradient)
  if kind == TLV.CAN_BE_PREFIX then tree:add(ndn_prefix, whole, true)
  elseif kind == TLV.MUST_BE_FRESH then tree:add(ndn_fresh, whole, true)
  elseif kind == TLV.CONTENT and range then add_content(tree, range, is_gradient)
  elseif kind == TLV.NONCE and range and range:len() == 4 then tree:add(ndn_nonce, range)
  elseif kind == TLV.LIFETIME and range and is_integer(range:len()) then tree:add(ndn_lifetime, range, integer(range))
  elseif kind == TLV.HOP_LIMIT and range and range:len() == 1 then tree:add(ndn_hops, range)
  else tree:add(ndn_other, whole):set_text(string.format("Element of type 0x%02x", kind)) end
end

function ndn.dissector(tvb, pinfo, root)
  pinfo.cols.protocol = "NDN"
  local kind, length, at, stop = element_at(tvb, 0)
  local tree = root:add(ndn, stop and tvb(0, stop) or tvb())
  if kind ~= TLV.INTEREST and kind ~= TLV.DATA then
    tree:add_proto_expert_info(ndn.experts.malformed, "neither an Interest nor Data")
    return tvb:len()
  end
  tree:add(ndn_type, tvb(0, 1))
  local name, is_gradient
  while at < stop do
    local part_kind, bytes, value, after = element_at(tvb, at)
    if not part_kind or after > stop then
      tree:add_proto_expert_info(ndn.experts.malformed, "an element is longer than the one that it is in")
      break
    end
    if part_kind == TLV.NAME then
      if bytes > 0 then name, is_gradient = add_name(tree, tvb, value, bytes) end
    else
      add_element(tree, part_kind, tvb(at, after - at), bytes > 0 and tvb(value, bytes) or nil, is_gradient)
    end
    at = after
  end
  local text = (kind == TLV.INTEREST and "Interest " or "Data ") .. (name or "/")
  tree:append_text(": " .. text)
  pinfo.cols.info = text
  return stop
end
DissectorTable.get("ethertype"):add(NUMBERS.ETHER_TYPE, ndn)
