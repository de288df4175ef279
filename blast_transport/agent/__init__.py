"""The agent: the process on a host that receives data, within the permissions of its configuration.

`settings` holds the configuration, `permissions` checks requests of senders, `server` accepts connections and starts
sessions. `bundle` packs the agent into one file, which `remote` copies to hosts without an installation.
"""
