"""Facts and phrases of a result that several formats share."""
