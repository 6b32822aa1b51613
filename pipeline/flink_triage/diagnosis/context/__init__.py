"""Rules that interpret a line in the context of other lines; ``rules.CONTEXT`` lists them."""
