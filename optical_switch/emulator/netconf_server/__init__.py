"""An emulated Polatis switch that serves NETCONF over SSH: the models `optical-switch` and `polatis-switch`.

`server.py` serves it: `async with serve_netconf(8, 8, apply=apply, settings=settings) as switch`. A session is
`channel.py` (SSH), `session.py` (messages, without IO) and `operations.py` (what each operation does); `device.py` is
what the configuration does to the hardware. It shares no code with the driver that is its client, so that each tests
the other. Needs the extra `ssh-switches`. Start with `server.py`.
"""
