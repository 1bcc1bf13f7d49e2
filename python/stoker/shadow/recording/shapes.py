"""Operators whose result has a size that depends on values: the true one where the values are known, else the largest
possible, which is said."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import shares, values

aten = torch.ops.aten


def _is_mask(tensor) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.dtype in (torch.bool, torch.uint8)


def _real(shadow, tensor):
    """The values of a tensor, where they are known and the sizes that follow from them are wanted."""
    return None if shadow._world.request.bounded or shares.of(tensor) is not None else values.real(tensor)


def _empty(shadow, shape, dtype, like):
    with shadow._world.fake_mode:
        return torch.empty(shape, dtype=dtype, device=like.device)


def _spread(shadow, func, mask) -> int | None:
    """How many hold of a mask that follows from choices or from chance, which is said."""
    record = shadow._world.watcher.record
    count = shares.count(mask, record.batch if record is not None else None)
    if count is not None:
        shadow.note_spread(func)
    return count


def _positions(shadow, mask, rows: int | None):
    """One index for each dimension of a mask: where it holds, or `rows` of them, or as if all of it did."""
    if not isinstance(mask, FakeTensor):
        found = mask.nonzero() if mask.dim() else mask.reshape(1).nonzero()
        return list(found.unbind(1))
    known = _real(shadow, mask)
    if known is not None:
        places = values.table.on_host(lambda: list((known if known.dim() else known.reshape(1)).nonzero().unbind(1)))
        made = [_empty(shadow, place.numel(), torch.int64, mask) for place in places]
        for fake, place in zip(made, places):
            values.table.set_real(fake, place)
        return made
    if rows is None:
        rows = _spread(shadow, aten.index.Tensor, mask)
    if rows is None:
        shadow.note_bounded(aten.index.Tensor, mask)
    count = mask.numel() if rows is None else rows
    return [_empty(shadow, count, torch.int64, mask) for _ in range(max(1, mask.dim()))]


def _nonzero(shadow, args, kwargs):
    tensor = args[0]
    shadow._world.watcher.synchronises("nonzero")
    known = _real(shadow, tensor)
    if known is None:
        rows = _spread(shadow, aten.nonzero.default, tensor)
        if rows is None:
            shadow.note_bounded(aten.nonzero.default, tensor)
        out = _empty(shadow, (tensor.dim(), tensor.numel() if rows is None else rows), torch.int64, tensor).t()
    else:
        found = values.table.on_host(known.nonzero)
        out = _empty(shadow, tuple(reversed(found.shape)), torch.int64, tensor).t()
        values.table.set_real(out, found)
    return args, shadow._world.watcher.made(aten.nonzero.default, args, kwargs, out)


def _masked_select(shadow, args, kwargs):
    tensor, mask = args[0], args[1]
    shadow._world.watcher.synchronises("nonzero")
    known = _real(shadow, mask)
    shape = torch.broadcast_shapes(tensor.shape, mask.shape)
    if known is not None:
        count = values.table.on_host(lambda: int(known.expand(shape).sum()))
    else:
        count = _spread(shadow, aten.masked_select.default, mask) if shape == mask.shape else None
        if count is None:
            shadow.note_bounded(aten.masked_select.default, tensor)
            count = shape.numel()
    out = _empty(shadow, count, tensor.dtype, tensor)
    return args, shadow._world.watcher.made(aten.masked_select.default, args, kwargs, out)


def _index(shadow, args, kwargs):
    """Masks among the indices become positions."""
    indices = args[1]
    if not any(_is_mask(i) for i in indices):
        return args, None
    put = args[2] if len(args) > 2 else None
    if put is None:
        shadow._world.watcher.synchronises("nonzero")
    rows = put.shape[0] if put is not None and put.dim() and put.numel() > 1 else None  # as many as there are values for
    replaced: list = []
    for index in indices:
        if _is_mask(index):
            replaced.extend(_positions(shadow, index, rows))
        else:
            replaced.append(index)
    return (args[0], replaced, *args[2:]), None


def _unique(shadow, args, kwargs):
    tensor = args[0]
    known = _real(shadow, tensor)
    flags = list(args[1:]) + [True, False, False][len(args) - 1:]
    shadow._world.watcher.synchronises("nonzero")
    if known is not None:
        found = values.table.on_host(lambda: aten._unique2.default(known, *flags))
        made = [_empty(shadow, tuple(part.shape), part.dtype, tensor) for part in found]
        for fake, part in zip(made, found):
            values.table.set_real(fake, part)
        return args, tuple(made)
    shadow.note_bounded(aten._unique2.default, tensor)
    count = tensor.numel()
    return args, (_empty(shadow, count, tensor.dtype, tensor), _empty(shadow, tensor.shape, torch.int64, tensor),
                  _empty(shadow, count, torch.int64, tensor))


def _unique_consecutive(shadow, args, kwargs):
    tensor = args[0]
    shadow._world.watcher.synchronises("nonzero")
    shadow.note_bounded(aten.unique_consecutive.default, tensor)
    count = tensor.numel()
    return args, (_empty(shadow, count, tensor.dtype, tensor), _empty(shadow, tensor.shape, torch.int64, tensor),
                  _empty(shadow, count, torch.int64, tensor))


def _bincount(shadow, args, kwargs):
    least = kwargs.get("minlength", args[2] if len(args) > 2 else 0)
    known = _real(shadow, args[0])
    each = shares.counts(args[0], least) if known is None else None
    if known is not None and known.numel():
        least = max(least, values.table.on_host(lambda: int(known.max()) + 1))
    elif each is None:
        shadow.note_bounded(aten.bincount.default, args[0])
    out = _empty(shadow, max(1, least), torch.int64, args[0])
    if each is not None:
        values.table.set_guess(out, each)
    return args, out


def _repeat_interleave(shadow, args, kwargs):
    """The number of repeats of all rows together is a sum of values."""
    repeats = args[0]
    said = kwargs.get("output_size")
    known = values.real(repeats)
    if said is None and known is None:
        shadow.note_bounded(aten.repeat_interleave.Tensor, repeats)
        said = repeats.numel()
    count = said if said is not None else values.table.on_host(lambda: int(known.sum()))
    return args, _empty(shadow, count, torch.int64, repeats)


def ctc_lengths(scores, targets, input_lengths, target_lengths) -> tuple:
    """Lengths as numbers: PyTorch divides by those of tensors on the device alone where tensors are fake."""
    def numbers(lengths, most):
        if not isinstance(lengths, torch.Tensor):
            return lengths
        known = values.real(lengths)
        return [most] * lengths.numel() if known is None else values.table.on_host(known.tolist)

    return numbers(input_lengths, scores.shape[0]), numbers(target_lengths, targets.shape[-1])


def _no(shadow, args, kwargs):
    """Kernels of one kind of device alone: PyTorch's own are taken."""
    return args, False


def _ctc_loss(shadow, args, kwargs):
    """Its workspace has a column for each label and the blanks between them."""
    scores = args[0]
    longest = max(ctc_lengths(*args[:4])[1])
    batch = scores.shape[1]
    out = (_empty(shadow, batch, scores.dtype, scores), _empty(shadow, (batch, scores.shape[0], 2 * longest + 1), scores.dtype, scores))
    overload = aten._ctc_loss.Tensor if isinstance(args[2], torch.Tensor) else aten._ctc_loss.default
    return args, shadow._world.watcher.made(overload, args, kwargs, out)


def _ctc_loss_backward(overload):
    def answer(shadow, args, kwargs):
        out = _empty(shadow, tuple(args[1].shape), args[1].dtype, args[1])
        return args, shadow._world.watcher.made(overload, args, kwargs, out)

    return answer


def _nms(shadow, args, kwargs):
    """Boxes that no better one covers: all of them at most."""
    func = torch.ops.torchvision.nms.default
    shadow._world.watcher.synchronises("nonzero")
    shadow.note_bounded(func, args[0])
    return args, shadow._world.watcher.made(func, args, kwargs, _empty(shadow, args[0].shape[0], torch.int64, args[0]))


BY_NAME = {"torchvision::nms": _nms}  # of libraries that may not be there
BOUNDED = {aten._ctc_loss.default: _ctc_loss, aten._ctc_loss.Tensor: _ctc_loss,
           aten._ctc_loss_backward.default: _ctc_loss_backward(aten._ctc_loss_backward.default),
           aten._ctc_loss_backward.Tensor: _ctc_loss_backward(aten._ctc_loss_backward.Tensor),
           aten.nonzero.default: _nonzero, aten.masked_select.default: _masked_select, aten.index.Tensor: _index,
           aten.index_put.default: _index, aten.index_put_.default: _index, aten._index_put_impl_.default: _index,
           aten._unique2.default: _unique, aten.unique_consecutive.default: _unique_consecutive,
           aten.bincount.default: _bincount, aten.repeat_interleave.Tensor: _repeat_interleave}
for _name in ("_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"):
    for _overload in ("default", "Tensor"):
        if hasattr(getattr(aten, _name, None), _overload):
            BOUNDED[getattr(getattr(aten, _name), _overload)] = _no
