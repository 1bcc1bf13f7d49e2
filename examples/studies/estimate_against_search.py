"""The setting that Stoker estimates beside a search over the grid: time spent, time of an epoch, and what is learnt at each batch.

    python estimate_against_search.py estimate search check learn table --folder compared

`estimate` probes the loader and plans train_fashion.py on this CPU; `search` trains an epoch of every setting of a grid; `check`
measures the default, the estimated and the best setting of the search again, three times each; `learn` trains longer at the default
and at the estimated batch. Each keeps what it found in the folder, so that they may run one by one; `table` prints all of it.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE / "train_fashion.py"
DEFAULT = {"batch": 32, "workers": 0}  # the script's, and PyTorch's number of workers
BATCHES, WORKERS = (16, 32, 64, 128, 256), (0, 1, 2)
LR = 0.001
EPOCHS, SEEDS, REPEATS = 8, 3, 3


class Comparison:
    """One folder with what each part found."""

    def __init__(self, folder: pathlib.Path, stoker: str):
        self.folder, self.stoker, self.file = folder, stoker, folder / "found.json"
        folder.mkdir(parents=True, exist_ok=True)
        self.found = json.loads(self.file.read_text()) if self.file.exists() else {}

    def keep(self, name: str, value: dict) -> None:
        self.found[name] = value
        self.file.write_text(json.dumps(self.found, indent=2) + "\n")

    def call(self, *words) -> str:
        return subprocess.run([self.stoker, *map(str, words)], cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True).stdout

    def timed(self, *words) -> tuple:
        began = time.monotonic()
        return self.call(*words), time.monotonic() - began

    def estimate(self) -> None:
        spent = {}
        _, spent["calibrate"] = self.timed("calibrate", "-o", "cpu.toml", "--device", "cpu", "--threads", 1, "--budget", "45s",
                                           "--for", f"{SCRIPT}:make_model")
        _, spent["probe"] = self.timed("probe", f"{SCRIPT}:make_loader", "-o", "loader.probe.json")
        limits = ("--data", "loader.probe.json", "--threads", 1, "--max-global-batch", max(BATCHES), "--json")
        text, spent["plan"] = self.timed("plan", SCRIPT, "--gpu", "cpu.toml", *limits)
        self.keep("estimate", {"setting": setting_of(text), "epoch_s": json.loads(text)["epoch_s"], "spent_s": spent})
        rough, _ = self.timed("plan", SCRIPT, "--gpu", "cpu", *limits)  # the step is captured by then
        self.keep("uncalibrated", {"setting": setting_of(rough), "epoch_s": json.loads(rough)["epoch_s"]})

    def sweep(self, name: str, *words) -> list:
        """Trials of one study: each one's values, metrics and time."""
        metrics = [word for metric in ("epoch_s:min", "accuracy:max", "loss:min") for word in ("--metric", metric)]
        text = self.call("sweep", "--store", f"{name}.db", "--quiet", "--json", *metrics, *words)
        trials = json.loads(text)["trials"]
        assert all(trial["state"] == "done" for trial in trials), text
        return trials

    def search(self) -> None:
        axes = [word for axis, values in (("batch", BATCHES), ("workers", WORKERS)) for word in ("--vary", f"{axis}={joined(values)}")]
        began = time.monotonic()
        trials = self.sweep("search", *axes, "--", "python", SCRIPT, "--batch", "{batch}", "--workers", "{workers}", "--epochs", 1)
        spent = time.monotonic() - began
        rows = [{**trial["values"], "epoch_s": trial["metrics"]["epoch_s"]} for trial in trials]
        best = min(rows, key=lambda row: row["epoch_s"])
        self.keep("search", {"setting": {name: best[name] for name in DEFAULT}, "rows": rows, "spent_s": spent})

    def settings(self) -> dict:
        """Those that are compared, by name; of two that are the same one is measured."""
        named = {"default": DEFAULT} | {name: self.found[name]["setting"] for name in ("estimate", "uncalibrated", "search")}
        return {name: dict(zip(DEFAULT, values)) for name, values in {n: tuple(s[k] for k in DEFAULT) for n, s in named.items()}.items()}

    def check(self) -> None:
        pairs = sorted({tuple(setting.values()) for setting in self.settings().values()})
        values = joined(f"{batch}:{workers}" for batch, workers in pairs)
        trials = self.sweep("check", "--vary", f"batch,workers={values}", "--repeat", REPEATS, "--order", "random", "--", "python", SCRIPT,
                            "--batch", "{batch}", "--workers", "{workers}", "--seed", "{seed}", "--epochs", 2)
        rows: dict = {}
        for trial in trials:
            rows.setdefault(f"{trial['values']['batch']}:{trial['values']['workers']}", []).append(trial["metrics"]["epoch_s"])
        self.keep("check", rows)

    def learn(self) -> None:
        small, large = DEFAULT["batch"], self.found["estimate"]["setting"]["batch"]
        rates = f"{small}:{LR},{large}:{LR},{large}:{LR * (large / small) ** 0.5:.3g}"  # Adam: with the root of the batch
        trials = self.sweep("learn", "--vary", f"batch,lr={rates}", "--repeat", SEEDS, "--", "python", SCRIPT, "--batch", "{batch}", "--lr",
                            "{lr}", "--workers", self.found["estimate"]["setting"]["workers"], "--epochs", EPOCHS, "--seed", "{seed}")
        rows: dict = {}
        for trial in trials:
            row = {name: trial["metrics"][name] for name in ("accuracy", "loss", "epoch_s")} | {"wall_s": trial["wall_s"]}
            rows.setdefault(f"{trial['values']['batch']}:{trial['values']['lr']}", []).append(row)
        self.keep("learn", rows)

    def table(self) -> None:
        spent = self.found["estimate"]["spent_s"]
        print(f"estimate: {sum(spent.values()):.0f} s ({', '.join(f'{name} {seconds:.0f}' for name, seconds in spent.items())})")
        print(f"search:   {self.found['search']['spent_s']:.0f} s ({len(self.found['search']['rows'])} settings, an epoch each)")
        for name, setting in self.settings().items():
            epochs = self.found["check"]["{batch}:{workers}".format(**setting)]
            forecast = self.found.get(name, {}).get("epoch_s")
            said = "" if forecast is None else f", forecast {forecast['value']:.2f} [{forecast['low']:.2f}-{forecast['high']:.2f}]"
            print(f"  {name:12} batch {setting['batch']:3} workers {setting['workers']}: epoch {mean_text(epochs)} s{said}")
        for key, rows in self.found["learn"].items():
            print(f"  batch:lr {key:10} after {EPOCHS} epochs: " + ", ".join(
                f"{name} {mean_text([row[name] for row in rows])}" for name in ("accuracy", "loss", "wall_s")))


def setting_of(text: str) -> dict:
    settings = json.loads(text)["settings"]
    return {name: settings[name] for name in DEFAULT}


def joined(values) -> str:
    return ",".join(map(str, values))


def mean_text(values: list) -> str:
    return f"{statistics.mean(values):.3g} ({min(values):.3g}-{max(values):.3g})"


def main() -> None:
    parts = ("estimate", "search", "check", "learn", "table")
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="+", choices=parts)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("compared"))
    parser.add_argument("--stoker", default="stoker")
    given = parser.parse_args()
    comparison = Comparison(given.folder.resolve(), given.stoker)
    for part in given.parts:
        getattr(comparison, part)()


if __name__ == "__main__":
    main()
