"""What the words of a calibration's command line mean."""

from __future__ import annotations

from ..errors import CaptureError


def threads_of(text: str, cores: int) -> list:
    """"1,2" -> [1, 2]; 1 and all cores where the text is empty."""
    if not text:
        return sorted({1, cores})
    try:
        found = sorted({int(word) for word in text.split(",")})
    except ValueError:
        found = [0]
    if found[0] < 1:
        raise CaptureError(f"--threads {text}: write whole numbers of 1 or more with commas between, such as 1,{cores}")
    if found[-1] > cores:
        raise CaptureError(f"--threads {text}: this process may use {cores} cores; more threads would wait for each other, so name "
                           f"{cores} at most")
    return found


def models_of(text: str) -> list:
    return [word for word in text.split(",") if word]
