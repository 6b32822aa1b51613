"""``python -m flink_triage``: the console command, where scripts are not on the path."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
