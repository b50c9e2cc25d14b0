"""Pictures, decoded by Pillow; nothing that a file claims about itself is trusted."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from saccade.data.errors import one_line
from saccade.data.extra import required
from saccade.data.media import MediaError, Source, opened

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
"""The formats that are decoded. Pillow knows more, some of which start other programs."""

KINDS = "JPEG, PNG, WebP, GIF, BMP or TIFF"
MOST_BYTES = 1 << 28
LONGEST = 32
"""How many times as long as the shorter side the longer one may be."""

MOST_PIXELS = 1 << 26
"""A small file can announce a picture that fills the memory."""
TURN = 0x0112
"""The EXIF tag that says how the camera was held; from 5 on, width and height are swapped."""
WIDE = ("I;16", "I;16L", "I;16B", "I;16N", "I")

Square = Literal["crop", "stretch"]
Pixels = NDArray[np.uint8]


class PictureError(MediaError):
    """A picture that cannot be used."""


def check_picture(source: Source) -> None:
    """Decodes a picture, as coarsely as its format allows; raises `PictureError` if it is damaged or not a picture."""
    with _opened(source) as picture:
        picture.draft("RGB", (1, 1))  # an eighth of the size, if it is a JPEG
        picture.load()
        _check_mode(picture)


def read_picture(source: Source, *, shorter: int | None = None, square: Square = "crop") -> Pixels:
    """The pixels of a picture, (lines, columns, 3): red, green and blue, the right way up.

    Transparent parts become white. For an animation, the first picture is read.

    Args:
        source: a path, or the contents of a file.
        shorter: the length to scale the shorter side to; None leaves the picture as it is.
        square: "crop" keeps the proportions, "stretch" makes it a square of this side.
    """
    operations = required("PIL.ImageOps", "images")
    with _opened(source) as picture:
        if shorter is not None:
            picture.draft("RGB", (shorter, shorter))  # decodes a JPEG no finer than is needed
        turned = _plain(operations.exif_transpose(picture))
        if shorter is not None:
            width, height = turned.size
            factor = shorter / min(width, height)
            size = (shorter, shorter) if square == "stretch" else (round(width * factor), round(height * factor))
            if size != turned.size:
                turned = turned.resize(size, required("PIL.Image", "images").Resampling.BICUBIC, reducing_gap=3.0)
        return np.array(turned, dtype=np.uint8)


def as_png(picture: Any) -> bytes:
    """A picture in memory as the contents of a PNG file, which loses nothing.

    Args:
        picture: a Pillow image, or an array (lines, columns) or (lines, columns, 3 or 4) of integers from 0 to 255 or
            of floating-point numbers from 0 to 1.
    """
    library = required("PIL.Image", "images")
    if not isinstance(picture, library.Image):
        picture = library.fromarray(_bytes_of(np.asarray(picture)))
    content = io.BytesIO()
    try:
        _check_size(picture.size)
        (picture if picture.mode in ("L", "RGB", "RGBA", "P", "1") else _plain(picture)).save(content, "PNG")
    except (OSError, ValueError) as error:
        if isinstance(error, PictureError):
            raise
        raise PictureError(f"it cannot be stored ({one_line(error)[:200]})", "Convert it to RGB.") from None
    return content.getvalue()


def _bytes_of(array: NDArray[Any]) -> Pixels:
    channels = array.shape[2] if array.ndim == 3 else 3
    if array.ndim not in (2, 3) or channels not in (3, 4) or 0 in array.shape:
        fix = "Give (lines, columns) or (lines, columns, 3)."
        raise PictureError(f"it is an array of shape {array.shape}", fix)
    limit = 1.0 if array.dtype.kind == "f" else 255
    if array.dtype.kind not in "fiu" or not ((array >= 0) & (array <= limit)).all():  # nor if one is NaN
        fix = "Give integers from 0 to 255, or floating-point numbers from 0 to 1."
        raise PictureError(f"it is an array of {array.dtype} with values out of range", fix)
    return np.ascontiguousarray(np.round(array * (255 if array.dtype.kind == "f" else 1)), dtype=np.uint8)


@contextmanager
def _opened(source: Source) -> Iterator[Any]:
    """Opens a picture, and checks its header and size."""
    library = required("PIL.Image", "images")
    with opened(source, PictureError) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if not size:
            raise PictureError("it is an empty file", "Copy it again.")
        if size > MOST_BYTES:
            raise PictureError(f"it is a file of {size:,} bytes", f"At most {MOST_BYTES:,} are read: make it smaller.")
        try:
            with library.open(file, formats=FORMATS) as picture:
                _check_size(picture.size)
                yield picture
        except PictureError:
            raise
        except library.DecompressionBombError:
            raise PictureError(*_too_large("very many")) from None
        except library.UnidentifiedImageError:
            file.seek(0)
            raise PictureError(f"it is not a picture (it begins with {file.read(8)!r})", f"Give {KINDS}.") from None
        except Exception as error:  # a damaged file can make a decoder raise anything
            raise PictureError(f"it is damaged ({one_line(error)[:200]})", "Copy it again.") from None


def _too_large(pixels: str) -> tuple[str, str]:
    return f"it has {pixels} pixels", f"At most {MOST_PIXELS:,} are decoded: make it smaller."


def _check_size(size: tuple[int, int]) -> None:
    if min(size) < 1:
        raise PictureError("it has no pixels", "Copy it again, or leave it out.")
    if size[0] * size[1] > MOST_PIXELS:
        raise PictureError(*_too_large(f"{size[0]:,} x {size[1]:,}"))
    if max(size) > LONGEST * min(size):  # enlarged until the shorter side fits, it would fill the memory
        fix = f"At most {LONGEST} to 1 is read: crop it."
        raise PictureError(f"its sides are {size[0]:,} and {size[1]:,} pixels long", fix)


def _check_mode(picture: Any) -> None:
    if picture.mode == "F":
        raise PictureError("its pixels are floating-point numbers of any range", "Convert it to 8 bits.")


def _plain(picture: Any) -> Any:
    """The picture in red, green and blue, on white where it is transparent."""
    _check_mode(picture)
    if picture.mode in WIDE:  # 16 bits of grey
        library = required("PIL.Image", "images")
        picture = library.fromarray((np.asarray(picture).astype(np.uint32) >> 8).clip(0, 255).astype(np.uint8))
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        over = picture.convert("RGBA")
        ground = required("PIL.Image", "images").new("RGBA", over.size, "white")
        picture = required("PIL.Image", "images").alpha_composite(ground, over)
    return picture.convert("RGB")
