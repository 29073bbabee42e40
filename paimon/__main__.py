"""`python -m paimon` is the command line."""

import sys

from paimon.cli.main import main

sys.exit(main())
