"""The agent: the process on a host that receives, and what it may do there.

`settings` says what is allowed, `permissions` turns what a sender asks for into something safe or refuses it, `server`
accepts connections and hands them to sessions. `bundle` makes it a single file, which `remote` copies to bare hosts.
"""
