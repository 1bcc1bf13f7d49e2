"""Lightning's Trainer: `Trainer(..., callbacks=[stoker.observe.lightning.callback("run.obs.jsonl")])`."""

from __future__ import annotations

from .layout import BACKWARD, EXCEPTION, FORWARD, OPTIMIZER, OTHER, UNCLOSED, WAIT
from .observer import Observer


class TrainerEvents:
    """What a Lightning Callback does for an observer. One batch a row: with accumulation some have no optimizer step.

    Lightning calls training_step and not the module, so no hook is used: forward is training_step with its loss.
    Waiting is what lies between the last event of one batch and the first of the next, the copy to the device included.
    Steps of manual optimization come as forward, backward and optimizer as far as the callbacks of manual_backward
    show them.
    """

    def __init__(self, observer: Observer):
        self.observer = observer

    def on_train_start(self, trainer, pl_module):
        self.observer.knows_model(pl_module)

    def on_train_epoch_start(self, trainer, pl_module):
        self.observer.epoch += 1
        self.observer.mark("wait")

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        observer = self.observer
        observer.end_step(UNCLOSED)
        if observer.begin_step(validation=False):
            observer.sees_batch(batch)
            self._part(FORWARD)

    def on_before_zero_grad(self, trainer, pl_module, optimizer):
        self._end_of_part()

    def on_before_backward(self, trainer, pl_module, loss):
        self._part(BACKWARD)

    def on_after_backward(self, trainer, pl_module):
        self._end_of_part()

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        self._part(OPTIMIZER)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.observer.end_step()
        self.observer.mark("wait")

    def on_validation_start(self, trainer, pl_module):
        self._was_no_wait()
        self.observer.mark(None)

    def on_validation_batch_start(self, trainer, pl_module, batch, batch_idx, dataloader_idx=0):
        observer = self.observer
        observer.end_step(UNCLOSED)
        if not getattr(trainer, "sanity_checking", False) and observer.begin_step(validation=True):
            observer.sees_batch(batch)
            self._part(FORWARD)

    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        self.observer.end_step()

    def on_validation_end(self, trainer, pl_module):
        self.observer.mark("wait")

    def on_save_checkpoint(self, trainer, pl_module, checkpoint):
        if not self.observer.is_open:
            self._was_no_wait()

    def on_exception(self, trainer, pl_module, exception):
        self.observer.end_step(EXCEPTION, type(exception))

    def on_fit_end(self, trainer, pl_module):
        self.observer.close()

    def _part(self, phase: int) -> None:
        observer = self.observer
        if observer.is_open and observer.from_this_thread():
            observer.timeline.switch(phase)
            observer.entered[phase] += 1

    def _end_of_part(self) -> None:
        if self.observer.is_open and self.observer.from_this_thread():
            self.observer.timeline.switch(OTHER)

    def _was_no_wait(self) -> None:
        if self.observer.ready():
            self.observer.timeline.relabel(WAIT, OTHER)


def callback(path=None, **options):
    """A Lightning Callback that records into `path`; options as for stoker.Observer."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

    kind = type("StokerCallback", (TrainerEvents, Callback), {"__doc__": TrainerEvents.__doc__})
    return kind(Observer(path, **options))
