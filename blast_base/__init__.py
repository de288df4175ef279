"""Basics that controller, client, transport and simulators share: addresses, extras, descriptors, exit statuses.

Start with `endpoint.py`. Imports none of our packages, except for `drawing`, which needs the interface (`blast_api`).
"""
