"""Facts and phrases of a result that all formats share."""
