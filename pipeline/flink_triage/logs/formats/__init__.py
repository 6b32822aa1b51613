"""What stands around log lines: carriers, exports, stack trace lines."""
