"""What takes every call and says nothing: it stands for libraries that only write down what a training tells them."""

from __future__ import annotations

import inspect

_HANDS_BACK = {"connect", "connect_configuration", "add_config_arguments", "broadcast", "allreduce", "watch_args"}  # their argument


class Silent:
    """Any attribute of it, any item and the result of any call is such a one, too."""

    def __init__(self, what: str = "silent", /, **attributes):
        self.__dict__.update(attributes, _stoker_name=what)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Silent(name)

    def __call__(self, *args, **kwargs):
        if args and (self._stoker_name in _HANDS_BACK or len(args) == 1 and not kwargs and inspect.isfunction(args[0])):
            return args[0]  # a decorator gives the function that it was given
        return Silent(self._stoker_name)

    def __getitem__(self, key):
        return Silent(str(key))

    def __setitem__(self, key, value):
        return None

    def __contains__(self, key):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __bool__(self):
        return True

    def __str__(self):
        return self._stoker_name

    def __format__(self, spec):
        return self._stoker_name

    def __fspath__(self):
        return self._stoker_name

    def __mro_entries__(self, bases):
        return ()
