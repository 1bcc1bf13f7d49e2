"""Where things lie, whichever room a test stands in."""

import pathlib

SUPPORT = pathlib.Path(__file__).resolve().parent  # modules and user's files that several rooms share
PYTHON = SUPPORT.parents[1]
REPOSITORY = PYTHON.parent
