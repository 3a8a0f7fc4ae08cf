-- What all protocols are made with. A block for each module of formats/ follows: HEADERS and NUMBERS are of its tables,
-- the rest is what stands beside this file.

local BASES = { [8] = ProtoField.uint8, [16] = ProtoField.uint16, [32] = ProtoField.uint32, [64] = ProtoField.uint64 }

local function protocol(name, title)
  local proto = Proto("gradbed." .. name, "gradbed: " .. title)
  proto.experts.malformed =
    ProtoExpert.new("gradbed." .. name .. ".malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
  return proto
end

-- What is assigned to a protocol's fields is added to them.
local function adding(proto, more) proto.fields = more end

-- The fields of a header as a list of { field, offset, bytes, constant, bits }; they become the protocol's.
local function columns(proto, prefix, header)
  local found, all, offset = {}, {}, 0
  for _, each in ipairs(header.fields) do
    local abbreviation, bytes = prefix .. "." .. each.name, each.bits / 8
    local field, flags
    if not BASES[each.bits] then
      field = ProtoField.bytes(abbreviation, each.name)
    else
      local base = (each.flags or each.hex) and base.HEX or base.DEC
      field = BASES[each.bits](abbreviation, each.name, base, each.values)
    end
    all[#all + 1] = field
    if each.flags then
      flags = {}
      for _, flag in ipairs(each.flags) do
        flags[#flags + 1] = ProtoField.bool(abbreviation .. "." .. flag[1]:lower(), flag[1], each.bits, nil, flag[2])
        all[#all + 1] = flags[#flags]
      end
    end
    found[#found + 1] = { field = field, at = offset, bytes = bytes, constant = each.constant, flags = flags }
    offset = offset + bytes
  end
  adding(proto, all)
  return found
end

local function add_columns(proto, tree, found, tvb)
  for _, each in ipairs(found) do
    local range = tvb(each.at, each.bytes)
    local item = tree:add(each.field, range)
    for _, flag in ipairs(each.flags or {}) do item:add(flag, range) end
    if each.constant and range:uint() ~= each.constant then
      item:add_proto_expert_info(proto.experts.malformed, "not " .. each.constant)
    end
  end
end

-- ---- Lanes: the rest of a packet as int32 ----

local function lanes_of(proto, prefix)
  local whole = ProtoField.bytes(prefix .. ".lanes", "Lanes")
  local lane = ProtoField.int32(prefix .. ".lane", "Lane")
  adding(proto, { whole, lane })
  return function(tree, tvb)
    local count = math.floor(tvb:len() / LANE_BYTES)
    if count == 0 then return 0 end
    local branch = tree:add(whole, tvb(0, count * LANE_BYTES))
    branch:set_text("Lanes: " .. count .. " int32")
    for number = 0, count - 1 do
      branch:add(lane, tvb(number * LANE_BYTES, LANE_BYTES)):prepend_text("[" .. number .. "] ")
    end
    return count
  end
end

-- The names of a field's flags that are set.
local function flag_words(header, value)
  local words = {}
  for _, each in ipairs(header.fields) do
    for _, flag in ipairs(each.flags or {}) do
      if math.floor(value / flag[2]) % 2 == 1 then words[#words + 1] = flag[1] end
    end
  end
  return #words > 0 and table.concat(words, ", ") or "no flags"
end

local function is_set(value, flag) return math.floor(value / flag) % 2 == 1 end

-- A protocol that is one header and lanes, with flags in its second byte.
local function lanes_protocol(name, header, describe)
  local proto = protocol(name, header.title)
  local prefix = "gradbed." .. name
  local found, lanes = columns(proto, prefix, header), lanes_of(proto, prefix)
  function proto.dissector(tvb, pinfo, root)
    if tvb:len() < header.bytes then return 0 end
    pinfo.cols.protocol = header.title
    local tree = root:add(proto, tvb())
    add_columns(proto, tree, found, tvb)
    local count = lanes(tree, tvb(header.bytes):tvb())
    local text = describe(tvb) .. ", " .. flag_words(header, tvb(1, 1):uint()) .. ", " .. count .. " lanes"
    tree:append_text(": " .. text)
    pinfo.cols.info = text
    return tvb:len()
  end
  return proto
end

-- ---- By the destination port, as switches and hosts do: the source port may be a switch's number ----

local PORTS = {}

-- Datagrams to the header's port are the protocol's, if they begin with its version and it accepts them; who accepts
-- only what it knows for sure is asked before who takes anything.
local function on_port(header, proto, accepts)
  local candidates = PORTS[header.port] or {}
  PORTS[header.port] = candidates
  table.insert(candidates, accepts and 1 or #candidates + 1, { header = header, proto = proto, accepts = accepts })
end

local function chosen(candidates, tvb)
  for _, each in ipairs(candidates or {}) do
    local header = each.header
    if tvb:len() >= header.bytes and tvb(0, 1):uint() == header.fields[1].constant
      and (not each.accepts or each.accepts(tvb)) then
      return each.proto
    end
  end
end

local function by_destination(tvb, pinfo, root)
  local proto = chosen(PORTS[pinfo.dst_port], tvb)
  return proto ~= nil and proto.dissector(tvb, pinfo, root) > 0
end

-- After all blocks.
local function register_ports()
  for port, candidates in pairs(PORTS) do
    local proto = Proto("gradbed.udp" .. port, "gradbed: UDP port " .. port)
    function proto.dissector(tvb, pinfo, root)
      local found = chosen(candidates, tvb)
      return found and found.dissector(tvb, pinfo, root) or 0
    end
    DissectorTable.get("udp.port"):add(port, proto)
  end
  local all = Proto("gradbed.udp", "gradbed: by UDP port")
  function all.dissector(tvb, pinfo, root) return by_destination(tvb, pinfo, root) and tvb:len() or 0 end
  all:register_heuristic("udp", by_destination)
  -- Or a gradient from the port of, say, DNS would be taken for one of its messages.
  if set_preference then pcall(set_preference, "udp.try_heuristic_first", true) end
end
