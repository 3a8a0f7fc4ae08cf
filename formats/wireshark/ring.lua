local ring = lanes_protocol("ring", HEADERS.ring, function(tvb)
  return "job " .. tvb(2, 2):uint() .. ", round " .. tvb(16, 4):uint() .. ", step " .. tvb(24, 2):uint()
end)
on_port(HEADERS.ring, ring)
