"""The text around log lines: carriers, exports, stack trace lines."""
