"""The CTC loss: PyTorch reads its lengths on the host, and fake tensors have none. Shapes as in ATen/native/cuda/LossCTC.cu."""

from __future__ import annotations

import torch

FUNCTIONS = {torch._C._VariableFunctions.ctc_loss, torch.nn.functional.ctc_loss}
_MEAN, _SUM = 1, 2  # ATen's numbers of the reductions


def loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=_MEAN, zero_infinity=False):
    """Stands in for torch.ctc_loss and torch.nn.functional.ctc_loss, with targets as long as the longest."""
    if isinstance(reduction, str):
        reduction = torch.nn._reduction.get_enum(reduction)
    for lengths in (input_lengths, target_lengths):
        if isinstance(lengths, torch.Tensor) and lengths.device.type != "cpu":
            lengths.to("cpu")  # the host waits for each
    probabilities = log_probs if log_probs.dim() == 3 else log_probs.unsqueeze(1)
    time, batch = probabilities.shape[:2]
    longest = targets.shape[1] if targets.dim() == 2 else -(-targets.shape[0] // batch)  # joined ones: the mean
    found = torch.ops.aten._ctc_loss.default(probabilities, targets.to(log_probs.device), [time] * batch, [longest] * batch, blank,
                                             zero_infinity)[0]
    if zero_infinity:
        found = torch.where(found == float("inf"), found.new_zeros(()), found)
    if reduction == _MEAN:
        return (found / torch.empty_like(found.detach()).clamp_min(1)).mean()
    return found.sum() if reduction == _SUM else found


def _loss(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    """The negative log likelihoods, and alpha, which the backward needs: two places a letter, and one, at each time."""
    time, batch = log_probs.shape[:2]
    return log_probs.new_empty((batch,)), log_probs.new_empty((batch, time, 2 * max(target_lengths) + 1))


def _backward(grad, log_probs, *rest):
    """The gradient of the log probabilities."""
    return torch.empty_like(log_probs, memory_format=torch.contiguous_format)


def register(handlers: dict) -> None:
    """Adds what answers PyTorch's operators of this loss."""
    handlers[torch.ops.aten._ctc_loss.default] = _loss
    handlers[torch.ops.aten._ctc_loss_backward.default] = _backward
