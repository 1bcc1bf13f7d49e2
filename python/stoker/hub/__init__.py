"""Models by the names of Hugging Face's hub: hf:ORG/NAME, or a folder or config.json of one."""

from .models import capture_function

__all__ = ["capture_function"]
