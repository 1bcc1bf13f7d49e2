"""The recorder of a capture, as a script's steps need it."""

from __future__ import annotations

import weakref

import torch

from ...tracing import operators
from ...tracing.recorder import Recorder


class ScriptRecorder(Recorder):
    """A recorder that knows batches which were copied to the device before it began."""

    def __init__(self, device_type: str, copied: dict):
        super().__init__(device_type)
        self._copied = copied
        self.homes: dict[int, int] = {}  # id of a parameter -> its storage when its model was called; later ones get another
        self._waited_for: dict[int, list] = {}  # address of a storage that no operator has read yet -> parameters that live there

    def add_storage(self, tensor, kind: str, byte_count: int | None = None) -> int:
        if kind == "buffer":
            reference = self._copied.get(tensor.untyped_storage()._cdata)
            if reference is not None and reference() is not None:
                kind = "input"
        number = super().add_storage(tensor, kind, byte_count)
        for parameter, reference in self._waited_for.pop(tensor.untyped_storage()._cdata, ()):
            if reference() is not None:
                self.homes[parameter] = number
        return number

    def lives_here(self, parameter) -> None:
        """Notes which storage the parameter has, without a number for one that no operator has read."""
        storage, number = parameter.untyped_storage(), self.storage_id(parameter)
        if number is None:
            self._waited_for.setdefault(storage._cdata, []).append((id(parameter), weakref.ref(storage)))
        else:
            self.homes[id(parameter)] = number

    def _record(self, func, args, kwargs, out) -> None:
        """A sparse tensor, for which a dense one stands, holds its indices and values alone."""
        super()._record(func, args, kwargs, out)
        if func is torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors.default:
            number = self.storage_id(out)
            if number is not None:
                self.bytes[number] = sum(t.untyped_storage().nbytes() for t in operators.tensors(args))
