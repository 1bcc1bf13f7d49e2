"""GPUs by the names that torch.cuda.get_device_name gives: scripts decide by them. They are as nvidia-smi and rocm-smi commonly show
them; no board but those of recorded traces was asked."""

from __future__ import annotations

import re

VENDORS = ("NVIDIA", "AMD")
_OF_THEIR_OWN = {"A100-PCIe-40GB": "A100-PCIE-40GB", "A100-PCIe-80GB": "A100 80GB PCIe", "H100-PCIe-80GB": "H100 PCIe",
                 "H100-SXM5-80GB": "H100 80GB HBM3", "H100-NVL-94GB": "H100 NVL", "H200-SXM-141GB": "H200", "B100-SXM": "B100",
                 "B200-SXM": "B200", "RTX6000Ada": "RTX 6000 Ada Generation"}
_QUADRO = {"RTX6000-Turing": "Quadro RTX 6000", "RTX8000-Turing": "Quadro RTX 8000", "P4000": "Quadro P4000"}
_GEFORCE = re.compile(r"([GR]TX)(\d{3,4}M?)(Ti)?(Super)?")
_TESLA = re.compile(r"(K|M|P|V|T)\d+S?(-\S+)?")  # boards for computing until Turing; the driver calls newer ones by NVIDIA's name alone


def of(vendor: str, name: str) -> str:
    """The name of a board that the catalogue calls `name`."""
    name = name.removesuffix("-die")
    if vendor == "AMD":
        return f"AMD Instinct {name.removesuffix('-GCD')}"
    if vendor != "NVIDIA" or name in _QUADRO:
        return _QUADRO.get(name) or f"{vendor} {name}"
    geforce = _GEFORCE.fullmatch(name)
    if geforce:
        series, number, ti, super_ = geforce.groups()
        return " ".join(filter(None, ("NVIDIA GeForce", series, number, ti, super_ and super_.upper())))
    if _TESLA.fullmatch(name):
        return "Tesla " + name.replace("PCIe", "PCIE")
    return "NVIDIA " + (_OF_THEIR_OWN.get(name) or re.sub(r"^RTXA", "RTX A", name))
