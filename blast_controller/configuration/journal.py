"""Where the journal lies that a configuration does not name. Imports nothing: for broken installations, too."""

DEFAULT_JOURNAL = "/var/lib/blast/journal.sqlite"
IN_MEMORY = (
    "The journal is in memory (journal.in_memory): a restart of the controller forgets every request and all light "
    "that it has lit; name a file by journal.file to keep them."
)
