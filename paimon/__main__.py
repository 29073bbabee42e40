"""Run the command line with `python -m paimon`."""

import sys

from paimon.cli.main import main

sys.exit(main())
