"""Recordings: the axis, and the spectrogram above the alignment in a real browser."""

import base64
import io
import json
import struct
import wave
import zlib

import numpy as np
import pytest
import torch

from saccade.interpretation.explorer import SoundAxis, render, write_page
from saccade.interpretation.explorer.media import PNG, spectrogram_png, wav
from tests.interpretation.explorer.examples import RATE, png, recording, wait_until


def pixels(content: bytes) -> np.ndarray:
    """Decodes a greyscale PNG without filters, chunk by chunk."""
    assert content.startswith(PNG)
    place, chunks = len(PNG), {}
    while place < len(content):
        (size,) = struct.unpack_from(">I", content, place)
        kind, body = content[place + 4 : place + 8], content[place + 8 : place + 8 + size]
        assert struct.unpack_from(">I", content, place + 8 + size)[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        place += 12 + size
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (depth, colour) == (8, 0)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


def test_spectrogram_is_dark_where_it_is_loud_and_low_at_the_bottom() -> None:
    features = np.zeros((5, 7))
    features[1, 3] = 9.0
    drawn = pixels(spectrogram_png(torch.tensor(features)))
    assert drawn.shape == (5, 7)
    assert drawn[5 - 1 - 1, 3] == 0
    assert (np.delete(drawn.flatten(), 3 * 7 + 3) == 255).all()


def test_wav_is_what_the_standard_library_reads() -> None:
    samples = [0.0, 0.5, -1.0, 2.0]
    with wave.open(io.BytesIO(wav(samples, 16_000))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 16_000)
        assert np.frombuffer(file.readframes(4), "<i2").tolist() == [0, 16384, -32767, 32767]


def test_axis() -> None:
    axis = SoundAxis.from_features(torch.zeros(4, 50), seconds=0.5, samples=torch.zeros(4000), rate=RATE)
    assert len(axis) == 50
    assert axis.names[:2] == ["0.00 s", "0.01 s"]
    assert axis.wav is not None
    assert len(SoundAxis.from_features([[0.0] * 50], seconds=0.5, frames=13)) == 13


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"png": b"GIF89a"}, "PNG file, got bytes that start with b'GIF89a'"),
        ({"frames": 0}, "frames must be at least 1, got 0"),
        ({"seconds": 0.0}, "seconds must be a positive number, got 0.0"),
        ({"seconds": float("nan")}, "seconds must be a positive number, got nan"),
        ({"wav": b"OggS" + bytes(20)}, "WAV file, got bytes that start with b'OggS"),
    ],
)
def test_wrong_axis(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        SoundAxis(**{"png": png(), "frames": 3, "seconds": 1.0, **arguments})


@pytest.mark.parametrize(
    ("features", "arguments", "message"),
    [
        ([1.0, 2.0], {}, r"\(mels, frames\) .* got shape \(2,\)"),
        ([[1.0, float("nan")]], {}, "finite, got nan at mel 0, frame 1"),
        ([[1.0]], {"samples": [0.0]}, "samples and rate belong together"),
        ([[1.0]], {"samples": [0.0, float("inf")], "rate": 8}, "finite, got inf at sample 1"),
        ([[1.0]], {"samples": [[0.0]], "rate": 8}, r"one channel .* got shape \(1, 1\)"),
        ([[1.0]], {"samples": [0.0], "rate": 0}, "rate must be .* got 0"),
    ],
)
def test_wrong_features(features, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        SoundAxis.from_features(features, seconds=1.0, **arguments)


def test_text_has_a_time_axis() -> None:
    lines = render([recording()], "text", width=60).decode().splitlines()
    ruler = lines.index("decoder") + 1
    assert lines[ruler].split() == ["0.0", "s", "0.2", "0.4"]
    starts = [len(line) - len(line[2:].lstrip()) for line in lines[ruler + 1 : ruler + 5]]
    assert starts == sorted(starts)  # later letters attend to later frames
    assert len(set(starts)) == 4


def test_json_holds_the_recording() -> None:
    axis = json.loads(render([recording()], "json"))["items"][0]["maps"][0]["keys"]
    assert (axis["kind"], axis["frames"], axis["seconds"]) == ("sound", 23, 0.5)
    assert base64.b64decode(axis["png"]).startswith(PNG)
    assert base64.b64decode(axis["wav"]).startswith(b"RIFF")


def test_picture() -> None:
    pytest.importorskip("matplotlib")
    assert render([recording()], "png").startswith(PNG)


def test_a_recording_that_does_not_fit_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"recordings alone exceed max_megabytes=0.005.* leave out the sound"):
        write_page(tmp_path / "page.html", [recording()], title="Sound", max_megabytes=0.005)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "sound.html"
    write_page(path, [recording()], title="Sound")
    return path


# Orange, the colour of attended frames: how much redder than blue each fifth of the strip is.
REDNESS = """(canvas, [top, height, left]) => {
    const ratio = canvas.width / canvas.clientWidth;
    const context = canvas.getContext('2d');
    const across = canvas.width - left * ratio;
    return [0, 1, 2, 3, 4].map(part => {
        const { data } = context.getImageData(
            left * ratio + part * across / 5, top * ratio, across / 5, height * ratio);
        let sum = 0;
        for (let place = 0; place < data.length; place += 4)
            if (data[place + 3] > 0) sum += data[place] - data[place + 2];
        return sum;
    });
}"""


def test_spectrogram_above_the_heat_map_follows_the_letter(visit, place) -> None:
    page = visit(place, "at=2.14")
    page.wait_for_timeout(200)
    redness = page.eval_on_selector("canvas.sheet", REDNESS, [25, 90, 40])
    assert max(range(5), key=redness.__getitem__) == 14 * 5 // 23
    box = page.locator("canvas.sheet").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 18 + 130 + 6 + 10)  # the first letter
    page.wait_for_selector("[role=status] bdi:text-is('s')")
    page.wait_for_timeout(100)
    redness = page.eval_on_selector("canvas.sheet", REDNESS, [25, 90, 40])
    assert max(range(5), key=redness.__getitem__) == 0


def test_text_view_shows_the_spectrogram(visit, place) -> None:
    page = visit(place, "view=text")
    page.wait_for_selector("canvas.spectrogram[data-drawn=true]")
    page.locator('.text[data-side="query"] .mark >> nth=3').hover()
    page.wait_for_timeout(100)
    redness = page.eval_on_selector("canvas.spectrogram", REDNESS, [25, 100, 0])
    assert max(range(5), key=redness.__getitem__) == 4
    assert page.inner_text(".card >> nth=0 >> h3") == "Input: attention of </s>"
    box = page.locator("canvas.spectrogram").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 3.5 / 23, box["y"] + 60)  # the frame that the first letter attends to
    page.wait_for_selector("[role=status] bdi:text-is('s')")
    shown = page.locator('.text[data-side="query"] .mark').evaluate_all("marks => marks.map(mark => +mark.title)")
    assert shown[0] == pytest.approx(float(recording().maps[0].weights[0, 0, 3]), abs=6e-5)


@pytest.mark.parametrize("view", ["heat", "text"])
def test_the_part_that_a_letter_attends_to_is_played(visit, place, view) -> None:
    page = visit(place, f"view={view}&pin=query.1")
    button = page.get_by_role("button", name="Play what i attends to")
    weights = recording().maps[0].weights[0, 1]
    parts = [(i, j) for i in range(23) for j in range(i + 1, 24) if weights[i:j].sum() >= 0.8]
    first, last = min(parts, key=lambda part: (part[1] - part[0], part[0]))
    assert f"{first / 46:.2f}\u2013{last / 46:.2f} s" in button.inner_text()
    # What the page hands to the speaker, as the browser's own interface sees it.
    page.evaluate(
        """() => {
            const start = AudioBufferSourceNode.prototype.start;
            AudioBufferSourceNode.prototype.start = function (when, from, long) {
                window.played = [this.buffer.duration, from, long];
                return start.call(this, when, from, long);
            };
        }"""
    )
    button.click()
    wait_until(page, "window.played")
    duration, start, long = page.evaluate("window.played")
    assert duration == pytest.approx(0.5, abs=0.01)
    assert start + long / 2 == pytest.approx((first + last) / 92, abs=0.01)
    assert long == pytest.approx(0.15)  # shorter parts would only click


def test_without_sound_there_is_no_player(visit, tmp_path) -> None:
    write_page(tmp_path / "page.html", [recording(sound=False)], title="Silent")
    page = visit(tmp_path / "page.html")
    assert page.locator(".player").count() == 0
    assert page.locator("[role=tab]").all_inner_texts() == ["Heat map", "Text"]


@pytest.mark.parametrize("view", ["heat", "text"])
def test_downloads(visit, place, view, tmp_path) -> None:
    page = visit(place, f"view={view}&pin=query.1")
    page.get_by_label("Download").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG drawing").click()
    waiting.value.save_as(tmp_path / "view.svg")
    drawing = (tmp_path / "view.svg").read_text()
    assert "data:image/png" in drawing
    assert ">x<" in drawing
