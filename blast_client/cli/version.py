"""The version of the distribution, so that printing it needs no search for installed packages."""

VERSION = "0.1.0"
