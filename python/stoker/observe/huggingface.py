"""Hugging Face's Trainer: `Trainer(..., callbacks=[stoker.observe.huggingface.callback("run.obs.jsonl")])`."""

from __future__ import annotations

from .layout import OTHER, UNCLOSED, WAIT
from .observer import Observer


class TrainerEvents:
    """What a TrainerCallback does for an observer. One step a row, accumulated micro-batches included.

    The Trainer shows no next(loader), so waiting is what lies between the last event of a step (or of logging,
    evaluating, saving after it) and the beginning of the next: it holds the copy to the device, which is part of
    Accelerate's loader.
    """

    def __init__(self, observer: Observer):
        self.observer = observer

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
        if model is not None and self.observer.hooks is None:
            self.observer.attach(model, optimizer, getattr(optimizer, "scaler", None))

    def on_epoch_begin(self, args, state, control, **kwargs):
        self.observer.epoch += 1
        self.observer.mark("wait")

    def on_step_begin(self, args, state, control, **kwargs):
        self.observer.end_step(UNCLOSED)  # one that an exception left open
        self.observer.begin_step()

    def on_step_end(self, args, state, control, **kwargs):
        self.observer.end_step()
        self.observer.mark("wait")

    def _was_no_wait(self, args, state, control, **kwargs):
        observer = self.observer
        if not observer.is_open and observer.ready():
            observer.timeline.relabel(WAIT, OTHER)
            observer.mark("wait")

    on_log = on_evaluate = on_save = on_epoch_end = _was_no_wait

    def on_train_end(self, args, state, control, **kwargs):
        self.observer.close()


def callback(path=None, **options):
    """A TrainerCallback that records into `path`; options as for stoker.Observer."""
    from transformers import TrainerCallback

    kind = type("StokerCallback", (TrainerEvents, TrainerCallback), {"__doc__": TrainerEvents.__doc__})
    return kind(Observer(path, **options))
