"""The agent: the process on a host that receives, and what it may do there.

`settings` says what is allowed, `permissions` turns what a sender asks for into something safe or refuses it,
`authentication` and `tls` find out who is asking, `server` accepts connections and hands them to sessions. On bare
hosts `remote_start` copies the agent there over SSH, as the single file that `bundle` makes, and ends it afterwards.
"""
