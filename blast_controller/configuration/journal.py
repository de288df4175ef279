"""Where the journal lies that a configuration does not name. Imports nothing: for broken installations, too."""

DEFAULT_JOURNAL = "/var/lib/blast/journal.sqlite"
IN_MEMORY = (
    "The journal is in memory (journal.in_memory): after a restart the controller does not know its requests and "
    "light trees. Set journal.file to keep them."
)
