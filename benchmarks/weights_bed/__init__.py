"""Where pushes of weights are measured: the bed of the transports with a controller that grants its light.

`granting` is that controller; `push` is one push on one clock; `ways/` knows how each way is run, one file each;
`programs/` are what runs on the hosts, each by the interpreter that has its library.
"""
