"""A web page on this computer: bring a log, look at it, take the answer home."""
