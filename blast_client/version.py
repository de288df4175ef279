"""The version of the distribution, here so that telling it needs no look at what is installed."""

VERSION = "0.1.0"
