"""Rules that interpret a line by the lines around it; ``rules.CONTEXT`` lists them."""
