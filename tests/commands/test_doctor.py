"""The command `doctor`."""

from importlib import metadata

from saccade.commands.doctor import missing_packages
from saccade.kernels import native


def test_what_it_says(call, monkeypatch) -> None:
    code, out, _ = call("doctor")
    assert code == 0
    assert f"PyTorch {metadata.version('torch')}" in out
    assert ("Kernels: native" in out) == (native.library() is not None)
    assert "Extra train: installed" in out
    monkeypatch.setenv("SACCADE_NATIVE", "0")
    assert "Kernels: plain: SACCADE_NATIVE=0" in call("doctor")[1]


def test_missing_packages_are_named(monkeypatch) -> None:
    wanted = [
        "torch>=2",
        "here>=1; extra == 'train'",
        'not-here>=1 ; extra == "train"',
        "saccade[train]; extra == 'all'",
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: wanted)
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "1.0" if name == "here" else real(name))
    assert missing_packages() == {"train": ["not-here"]}
