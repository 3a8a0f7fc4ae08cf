-- The end of the traffic's frames, whatever headers they have.

local trailer = protocol("trailer", "end of a traffic's frame")
local trailer_columns = columns(trailer, "gradbed.trailer", HEADERS.trailer)
local warm_up = ProtoField.bool("gradbed.trailer.warm_up", "not measured (warm-up)", 16, nil, NUMBERS.warm_up)
adding(trailer, { warm_up })
trailer.prefs.enabled = Pref.bool("Look for it", true, "At the end of every frame, by its tag")

function trailer.dissector(tvb, pinfo, root)
  local bytes = HEADERS.trailer.bytes
  local at = tvb:len() - bytes
  if not trailer.prefs.enabled or at < 14 or tvb(at, 2):uint() ~= HEADERS.trailer.fields[1].constant then return end
  local tree = root:add(trailer, tvb(at, bytes))
  add_columns(trailer, tree, trailer_columns, tvb(at, bytes):tvb())
  tree:add(warm_up, tvb(at + 2, 2))
end
register_postdissector(trailer)
