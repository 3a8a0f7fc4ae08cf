local coded = protocol("coded", HEADERS.coded.title)
local coded_columns = columns(coded, "gradbed.coded", HEADERS.coded)
local component_columns = columns(coded, "gradbed.coded.component", HEADERS.component)
local request_columns = columns(coded, "gradbed.coded.request", HEADERS.request)
local bit_string = ProtoField.bytes("gradbed.coded.bit_string", "Bit string")
local receiver = ProtoField.uint16("gradbed.coded.receiver", "Receiver")
local components = ProtoField.uint16("gradbed.coded.components", "Components")
local missing = ProtoField.uint32("gradbed.coded.request.fragment", "Missing fragment")
local data = ProtoField.bytes("gradbed.coded.data", "Data")
local component = ProtoField.none("gradbed.coded.component", "Component")
local request = ProtoField.none("gradbed.coded.request", "Request")
adding(coded, { bit_string, receiver, components, missing, data, component, request })
coded.prefs.bits = Pref.uint("Length of bit strings (bits)", NUMBERS.bits, "The network's: --bits of gradbed run shuffle")

function coded.dissector(tvb, pinfo, root)
  local header, string_bytes = HEADERS.coded, coded.prefs.bits / 8
  local at = header.bytes + string_bytes
  if tvb:len() < at then return 0 end
  pinfo.cols.protocol = header.title
  local tree = root:add(coded, tvb())
  add_columns(coded, tree, coded_columns, tvb)
  local flags = tvb(1, 1):uint()
  local string_item = tree:add(bit_string, tvb(header.bytes, string_bytes))
  -- RFC 8279: bit i from the right is the worker with index i.
  for index = 0, coded.prefs.bits - 1 do
    local range = tvb(at - 1 - math.floor(index / 8), 1)
    if range:bitfield(7 - index % 8, 1) == 1 then string_item:add(receiver, range, index) end
  end
  local text = "job " .. tvb(2, 2):uint() .. ", transmission " .. tvb(8, 4):uint() .. ", fragment "
    .. tvb(12, 2):uint() .. " of " .. tvb(14, 2):uint() .. ", " .. flag_words(header, flags)
  tree:append_text(": " .. text)
  pinfo.cols.info = text
  if is_set(flags, NUMBERS.request) then
    if tvb:len() < at + HEADERS.request.bytes then
      tree:add_proto_expert_info(coded.experts.malformed, "no whole request")
      return tvb:len()
    end
    local branch = tree:add(request, tvb(at, HEADERS.request.bytes))
    add_columns(coded, branch, request_columns, tvb(at, HEADERS.request.bytes):tvb())
    local first = at + HEADERS.request.bytes - NUMBERS.request_bits / 8
    for number = 0, NUMBERS.request_bits - 1 do
      local range = tvb(first + math.floor(number / 8), 1)
      if range:bitfield(number % 8, 1) == 1 then branch:add(missing, range, tvb(12, 2):uint() + number) end
    end
    at = at + HEADERS.request.bytes
  elseif is_set(flags, NUMBERS.repair) then
    if tvb:len() < at + 2 + NUMBERS.components * HEADERS.component.bytes then
      tree:add_proto_expert_info(coded.experts.malformed, "no whole repair")
      return tvb:len()
    end
    local count = tvb(at, 2):uint()
    tree:add(components, tvb(at, 2))
    for number = 0, math.min(count, NUMBERS.components) - 1 do
      local range = tvb(at + 2 + number * HEADERS.component.bytes, HEADERS.component.bytes)
      add_columns(coded, tree:add(component, range), component_columns, range:tvb())
    end
    at = at + 2 + NUMBERS.components * HEADERS.component.bytes
  end
  if tvb:len() > at then tree:add(data, tvb(at)) end
  return tvb:len()
end
on_port(HEADERS.coded, coded)
