"""`python -m blast_transport`."""

import sys

from blast_transport.command import main

sys.exit(main())
