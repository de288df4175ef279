"""`python -m blast_transport`."""

import gc
import sys

# Garbage collection during imports takes a tenth of the time in which a small file is sent.
gc.disable()

from blast_transport.standalone.command import main  # noqa: E402 - the imports follow on purpose

gc.freeze()
gc.enable()
sys.exit(main())
