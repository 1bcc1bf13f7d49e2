import sys

from .cli import run

if __name__ == "__main__":  # a spawned worker imports this module again
    sys.exit(run())
