"""In what way PyTorch runs us."""

import torch


def exporting() -> bool:
    """Whether torch.export is at work: the graph must then hold PyTorch's own operators alone."""
    is_exporting = getattr(torch.compiler, "is_exporting", None)
    return is_exporting() if is_exporting is not None else False
