"""Pictures: decoding, and files that are damaged or hostile."""

import io
import os
import struct
import zlib

import numpy as np
import pytest

from saccade.data.pictures import PictureError, as_png, check_picture, read_picture

Pillow = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(0)
NOISE = RNG.integers(0, 256, (13, 29, 3), dtype=np.uint8)
SMOOTH = np.stack([*np.meshgrid(np.linspace(20, 230, 61), np.linspace(200, 40, 47)), np.full((47, 61), 90.0)], -1)
SMOOTH = SMOOTH.astype(np.uint8)


def content(pixels: np.ndarray, kind: str = "PNG", **options) -> bytes:
    file = io.BytesIO()
    Pillow.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_exact_formats_give_the_pixels(kind) -> None:
    assert (read_picture(content(NOISE, kind)) == NOISE).all()


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "GIF"])
def test_other_formats_come_near(kind) -> None:
    found = read_picture(content(SMOOTH, kind))
    assert np.abs(found.astype(int) - SMOOTH).mean() < 12


def test_grey_and_colour_tables_and_wide_pixels_become_rgb() -> None:
    grey = NOISE[..., 0]
    assert (read_picture(content(grey)) == grey[..., None]).all()
    wide = grey.astype(np.uint16) * 257
    assert (read_picture(content(wide, "PNG")) == grey[..., None]).all()
    table = io.BytesIO()
    Pillow.fromarray(NOISE // 64 * 64).quantize(64).save(table, "PNG")
    assert read_picture(table.getvalue()).shape == NOISE.shape


def test_transparent_parts_are_white() -> None:
    pixels = np.concatenate([NOISE, np.full((13, 29, 1), 255, np.uint8)], -1)
    pixels[3:5, 7:11, 3] = 0
    found = read_picture(content(pixels))
    assert (found[3:5, 7:11] == 255).all()
    assert (found[5:] == NOISE[5:]).all()


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize(("tag", "turns"), [(3, 2), (6, 3), (8, 1)])
def test_pictures_are_turned_the_right_way_up(kind, tag, turns) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = tag
    found = read_picture(content(SMOOTH, kind, exif=exif))
    assert np.abs(found.astype(int) - np.rot90(SMOOTH, turns)).mean() < 4


def test_the_shorter_side_is_scaled_and_the_proportions_stay() -> None:
    for kind in ("PNG", "JPEG"):
        assert read_picture(content(SMOOTH, kind), shorter=23).shape == (23, 30, 3)
        assert read_picture(content(SMOOTH, kind), shorter=94).shape == (94, 122, 3)
        assert read_picture(content(SMOOTH, kind), shorter=23, square="stretch").shape == (23, 23, 3)


def test_arrays_and_pictures_in_memory() -> None:
    for raw in (NOISE, NOISE / 255, NOISE.astype(np.int64), Pillow.fromarray(NOISE)):
        assert (read_picture(as_png(raw)) == NOISE).all()
    assert (read_picture(as_png(NOISE[..., 1])) == NOISE[..., 1:2]).all()
    assert read_picture(as_png(Pillow.fromarray(NOISE).convert("CMYK"))).shape == NOISE.shape


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (np.zeros((3, 5, 7)), r"shape \(3, 5, 7\)"),
        (np.zeros((0, 5)), "shape"),
        (np.full((3, 5), 1.5), "out of range"),
        (np.full((3, 5), np.nan), "out of range"),
        (np.full((3, 5), -1), "out of range"),
        (np.full((3, 5), "a"), "out of range"),
    ],
)
def test_arrays_that_are_no_picture(array, problem) -> None:
    with pytest.raises(PictureError, match=problem):
        as_png(array)


def announced(width: int, height: int) -> bytes:
    """A PNG of few bytes that announces many pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


JPEG, PNG = content(SMOOTH, "JPEG"), content(NOISE)
BAD = {
    "empty": (b"", "it is an empty file"),
    "text": (b"hello there, no picture", "it is not a picture"),
    "short jpeg": (JPEG[: len(JPEG) // 2], "it is damaged"),
    "short png": (PNG[: len(PNG) // 2], "it is damaged"),
    "header only": (PNG[:30], "it is"),
    "flipped": (PNG[:60] + bytes(255 - b for b in PNG[60:80]) + PNG[80:], "it is damaged"),
    "bomb": (announced(60_000, 60_000), "pixels"),
    "large": (announced(8_193, 8_193), "it has 8,193 x 8,193 pixels"),
    "postscript": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "it is not a picture"),
    "float": (content(np.zeros((3, 5), np.float32), "TIFF"), "floating-point numbers"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_bad_files_are_refused_when_they_are_checked_and_when_they_are_read(name) -> None:
    data, problem = BAD[name]
    for read in (check_picture, read_picture):
        with pytest.raises(PictureError, match=problem):
            read(data)


def test_files_that_are_too_large_or_no_files(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("saccade.data.pictures.MOST_BYTES", 100)
    with pytest.raises(PictureError, match="it is a file of"):
        check_picture(PNG)
    os.mkfifo(tmp_path / "pipe")
    for path, problem in (("gone.png", "does not exist"), ("pipe", "not an ordinary file"), ("a\0b", "be opened")):
        with pytest.raises(PictureError, match=problem):
            check_picture(str(tmp_path / path))


def test_without_pillow_the_error_names_the_command(monkeypatch) -> None:
    def missing(name: str):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("saccade.data.extra.importlib.import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "saccade\[images\]"'):
        check_picture(PNG)


def test_elongated_pictures_are_refused() -> None:
    thin = as_png(np.zeros((1, 32, 3), dtype=np.uint8))
    assert read_picture(thin).shape == (1, 32, 3)
    with pytest.raises(PictureError) as error:
        as_png(np.zeros((1, 33, 3), dtype=np.uint8))
    assert "crop it" in error.value.fix
