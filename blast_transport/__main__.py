"""`python -m blast_transport`."""

import sys

from blast_transport.standalone.command import main

sys.exit(main())
