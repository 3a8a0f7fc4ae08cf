"""Values of P4Runtime's messages: byte strings, P4Data, translated types; and the status of an answer."""
