"""SVG drawings of the HTML report."""
