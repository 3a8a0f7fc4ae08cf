local gradient = lanes_protocol("gradient", HEADERS.gradient, function(tvb)
  return "job " .. tvb(2, 2):uint() .. ", packet " .. tvb(4, 4):uint()
end)
on_port(HEADERS.gradient, gradient)
