"""The old name of `spaql.plants`, which files of earlier versions know."""

from spaql.plants import *  # noqa: F403
