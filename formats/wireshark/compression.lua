local part = protocol("part", HEADERS.part.title)
local part_columns = columns(part, "gradbed.part", HEADERS.part)
local acknowledgement = protocol("acknowledgement", HEADERS.acknowledgement.title)
local acknowledgement_columns = columns(acknowledgement, "gradbed.acknowledgement", HEADERS.acknowledgement)
local part_bitmap = ProtoField.bytes("gradbed.part.bitmap", "Bitmap")
local part_codes = ProtoField.bytes("gradbed.part.payload", "Codes")
local part_position = ProtoField.uint32("gradbed.part.position", "Position")
local part_code = ProtoField.int64("gradbed.part.code", "Code")
local record_length = ProtoField.uint16("gradbed.part.record_length", "Length of record")
adding(part, { part_bitmap, part_codes, part_position, part_code, record_length })

-- Bytes before the codes, and of the codes; nil if form or width are none.
local function part_lengths(tvb)
  local span, codes, form, width = tvb(16, 2):uint(), tvb(18, 2):uint(), tvb(20, 1):uint(), tvb(21, 1):uint()
  local index_bytes = ({
    [NUMBERS.dense] = 0, [NUMBERS.bitmap] = math.ceil(span / 8), [NUMBERS.coordinate] = 4 * codes,
  })[form]
  if not index_bytes or not ({ [1] = 1, [4] = 1, [8] = 1, [32] = 1, [64] = 1 })[width] then return nil end
  return index_bytes, math.ceil(codes * width / 8)
end

local function part_positions(tvb, index_bytes)
  local first, span, codes, form = tvb(12, 4):uint(), tvb(16, 2):uint(), tvb(18, 2):uint(), tvb(20, 1):uint()
  local found = {}
  for number = 0, (form == NUMBERS.bitmap and span or codes) - 1 do
    if form == NUMBERS.dense then
      found[#found + 1] = { first + number, tvb(12, 4) }
    elseif form == NUMBERS.coordinate then
      local range = tvb(HEADERS.part.bytes + 4 * number, 4)
      found[#found + 1] = { range:uint(), range }
    else
      local range = tvb(HEADERS.part.bytes + math.floor(number / 8), 1)
      if range:bitfield(number % 8, 1) == 1 then found[#found + 1] = { first + number, range } end
    end
  end
  return found
end

local function add_code(tree, tvb, at, number, width)
  if width == 1 then
    local range = tvb(at + math.floor(number / 8), 1)
    return tree:add(part_code, range, Int64(2 * range:bitfield(number % 8, 1) - 1))
  elseif width == 4 then
    local range = tvb(at + math.floor(number / 2), 1)
    local nibble = range:bitfield(number % 2 * 4, 4)
    return tree:add(part_code, range, Int64(nibble > 7 and nibble - 16 or nibble))
  end
  local range = tvb(at + number * width / 8, width / 8)
  if width == 64 then return tree:add(part_code, range, range:int64()) end
  return tree:add(part_code, range, Int64(range:int()))
end

function part.dissector(tvb, pinfo, root)
  local header = HEADERS.part
  if tvb:len() < header.bytes then return 0 end
  pinfo.cols.protocol = header.title
  local tree = root:add(part, tvb())
  add_columns(part, tree, part_columns, tvb)
  local text = "job " .. tvb(2, 2):uint() .. ", round " .. tvb(8, 4):uint() .. ", sequence " .. tvb(4, 4):uint()
    .. ", " .. flag_words(header, tvb(1, 1):uint()) .. ", " .. tvb(18, 2):uint() .. " codes"
  tree:append_text(": " .. text)
  pinfo.cols.info = text
  local index_bytes, code_bytes = part_lengths(tvb)
  if not index_bytes or header.bytes + index_bytes + code_bytes ~= tvb:len() then
    tree:add_proto_expert_info(part.experts.malformed, "form, width and codes do not go with the length")
    return tvb:len()
  end
  if code_bytes == 0 then return tvb:len() end
  local codes, width = tvb(18, 2):uint(), tvb(21, 1):uint()
  if tvb(20, 1):uint() == NUMBERS.bitmap then tree:add(part_bitmap, tvb(header.bytes, index_bytes)) end
  local positions = part_positions(tvb, index_bytes)
  local at = header.bytes + index_bytes
  local branch = tree:add(part_codes, tvb(at, code_bytes))
  branch:set_text("Codes: " .. codes .. " of " .. width .. " bits")
  for number = 0, codes - 1 do
    local item = add_code(branch, tvb, at, number, width)
    local position = positions[number + 1]
    if position then
      item:append_text(" at " .. position[1])
      item:add(part_position, position[2], position[1])
    end
  end
  return tvb:len()
end

function acknowledgement.dissector(tvb, pinfo, root)
  local header = HEADERS.acknowledgement
  if tvb:len() < header.bytes then return 0 end
  pinfo.cols.protocol = header.title
  local tree = root:add(acknowledgement, tvb())
  add_columns(acknowledgement, tree, acknowledgement_columns, tvb)
  local text = "job " .. tvb(2, 2):uint() .. ", all before " .. tvb(4, 4):uint() .. " have come"
  tree:append_text(": " .. text)
  pinfo.cols.info = text
  return tvb:len()
end

-- Other packets have the same port: these are told by their lengths.

local function is_acknowledgement(tvb)
  return tvb:len() == HEADERS.acknowledgement.bytes and is_set(tvb(1, 1):uint(), NUMBERS.ack)
end

local function is_part(tvb)
  local flags = tvb(1, 1):uint()
  if flags ~= 0 and flags ~= NUMBERS.part_end then return false end
  local index_bytes, code_bytes = part_lengths(tvb)
  return index_bytes ~= nil and HEADERS.part.bytes + index_bytes + code_bytes == tvb:len()
end

on_port(HEADERS.part, part, is_part)
on_port(HEADERS.acknowledgement, acknowledgement, is_acknowledgement)

-- Parts on a stream of TCP, each behind its length.
local stream = Proto("gradbed.parts", "gradbed: Parts over TCP")
function stream.dissector(tvb, pinfo, root)
  dissect_tcp_pdus(tvb, root, 2, function(head) return 2 + head(0, 2):uint() end, function(pdu, info, tree)
    tree:add(record_length, pdu(0, 2))
    part.dissector(pdu(2):tvb(), info, tree)
    return pdu:len()
  end)
  return tvb:len()
end
DissectorTable.get("tcp.port"):add(HEADERS.part.port, stream)
