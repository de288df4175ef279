"""Transcripts of optical switches as records, which are JSON objects.

    decoding.py       read a file, print its records
    recognition.py    the protocol of a transcript, by its content
    transcript.py     what every decoder provides
    tl1.py            TL1
    netconf.py        messages of NETCONF as records
    netconf_text.py   messages of NETCONF in captured bytes
    ncclient_log.py   messages of NETCONF in a log of ncclient
    redis.py          commands and replies of Redis as records
    resp.py           values in captured bytes of Redis
    redis_monitor.py  lines of `redis-cli MONITOR`
    gnmic.py          gNMI as gnmic prints it
    json_text.py      JSON values in text

All but `decoding.py` are pure. Start with `transcript.py`.
"""
