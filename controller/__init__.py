"""Who decides: planning (pure), the Ryu application with its REST interface, southbound clients."""
