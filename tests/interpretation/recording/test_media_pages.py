"""Pages of models that see and hear."""

import base64
import io

import numpy as np
import pytest
import torch

import saccade
from saccade.interpretation.recording.pictures import find_grid
from saccade.interpretation.recording.sounds import covered
from tests.interpretation.recording.pages import Page, lively, tokeniser, transformers

SMALL = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 31, "patch_size": 4}


def vision(kind):
    make = transformers
    if kind == "vit":
        return make.ViTModel(make.ViTConfig(**SMALL, image_size=(12, 20)))
    if kind == "clip":
        return make.CLIPVisionModel(make.CLIPVisionConfig(**SMALL, image_size=20))
    if kind == "dinov2":
        small = {**SMALL, "mlp_ratio": 2}
        del small["intermediate_size"]
        return make.Dinov2Model(make.Dinov2Config(**small, image_size=20))
    if kind == "registers":
        small = {**SMALL, "mlp_ratio": 2}
        del small["intermediate_size"]
        return make.Dinov2WithRegistersModel(
            make.Dinov2WithRegistersConfig(**small, image_size=20, num_register_tokens=4)
        )
    return make.SiglipVisionModel(make.SiglipVisionConfig(**SMALL, image_size=22))  # 2 pixels are left over


@pytest.mark.parametrize(
    ("kind", "size", "grid", "leading"),
    [
        ("vit", (12, 20), [3, 5], 1),
        ("clip", (20, 20), [5, 5], 1),
        ("dinov2", (12, 20), [3, 5], 1),
        ("registers", (20, 20), [5, 5], 5),
        ("siglip", (22, 22), [5, 5], 0),
    ],
)
def test_patches_and_class_tokens(tmp_path, kind, size, grid, leading):
    torch.manual_seed(3)
    model = lively(vision(kind))
    pixels = torch.randn(2, 3, *size)
    with torch.no_grad(), saccade.record(model) as trace:
        model(pixel_values=pixels)
    trace.explore(tmp_path / "page.html", inputs={"pixel_values": pixels}, row=1)
    page = Page(tmp_path / "page.html")
    name = trace.paths[0]
    rows, columns = page.axes(name)
    assert rows == columns
    assert columns["grid"] == grid
    assert len(columns["leading"]) == leading
    assert columns["leading"][:1] == ["[CLS]"][:leading]
    tokens = leading + grid[0] * grid[1]
    torch.testing.assert_close(page.weights(name, tokens, tokens), trace[name].weights[1], rtol=0, atol=2e-4)
    assert page.notes == []
    if kind == "siglip":  # one query collects the patches
        pooled = page.axes(trace.paths[-1])
        assert pooled[0]["pieces"] == ["[pooling]"]
        assert pooled[1]["grid"] == grid


def test_the_picture_is_the_one_that_was_seen(tmp_path):
    image = pytest.importorskip("PIL.Image")
    model = lively(vision("clip"))
    pixels = torch.zeros(2, 3, 20, 20)
    pixels[1, 0, :10] = 1.0  # the upper half is red
    with torch.no_grad(), saccade.record(model) as trace:
        model(pixel_values=pixels)
    trace.explore(tmp_path / "page.html", inputs=pixels, row=1)
    (axis,) = Page(tmp_path / "page.html").data["axes"]
    shown = np.asarray(image.open(io.BytesIO(base64.b64decode(axis["png"]))))
    assert shown.shape == (20, 20, 3)
    assert (shown[:10] == [255, 0, 0]).all()
    assert (shown[10:] == 0).all()


def test_pil_images_are_shown_whole_and_say_so(tmp_path):
    image = pytest.importorskip("PIL.Image")
    model = lively(vision("clip"))
    with torch.no_grad(), saccade.record(model) as trace:
        model(pixel_values=torch.rand(1, 3, 20, 20))
    trace.explore(tmp_path / "page.html", inputs=image.new("RGB", (53, 53), "green"))
    page = Page(tmp_path / "page.html")
    assert page.data["axes"][0]["grid"] == [5, 5]
    assert page.notes == []
    trace.explore(tmp_path / "page.html", inputs=image.new("RGB", (97, 53), "green"))
    (note,) = Page(tmp_path / "page.html").notes
    assert note.startswith("The picture is shown whole, as if it had been scaled to 5 x 5 patches")


def test_windows_of_a_picture_are_not_taken_for_the_picture(tmp_path):
    """A window transformer attends within parts of the picture, which stand in the batch."""
    config = transformers.SwinConfig(
        image_size=32, patch_size=4, embed_dim=12, depths=[1, 1], num_heads=[2, 2], window_size=4
    )
    model = lively(transformers.SwinModel(config))
    pixels = torch.randn(1, 3, 32, 32)
    with torch.no_grad(), saccade.record(model) as trace:
        model(pixel_values=pixels)
    windowed, whole = trace.paths
    assert trace[windowed].shape[0] == 4
    trace.explore(tmp_path / "page.html", inputs=pixels)
    page = Page(tmp_path / "page.html")
    assert page.names == [whole]
    assert page.axes(whole)[1]["grid"] == [4, 4]
    assert page.notes == [f"Not shown: {windowed}: its batch has 4 rows, and inputs has 1."]


@pytest.mark.parametrize(
    ("tokens", "size", "exact", "expected"),
    [
        (197, (224, 224), True, ((14, 14), 1)),
        (257, (224, 224), True, ((16, 16), 1)),
        (261, (224, 224), True, ((16, 16), 5)),
        (729, (384, 384), True, ((27, 27), 0)),
        (198, (480, 640), False, ((14, 14), 2)),
        (36 * 48 + 1, (504, 672), True, ((36, 48), 1)),
        (1, (224, 224), True, ((1, 1), 0)),
        (77, (224, 224), True, None),
    ],
)
def test_grids(tokens, size, exact, expected):
    assert find_grid(tokens, *size, exact=exact) == expected


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=24,
        d_model=24,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=31,
        decoder_ffn_dim=31,
        num_mel_bins=13,
        max_source_positions=50,
        max_target_positions=29,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
        decoder_start_token_id=2,
        suppress_tokens=[],
        begin_suppress_tokens=[],
    )
    return lively(transformers.WhisperForConditionalGeneration(config))


def test_speech(tmp_path):
    torch.manual_seed(5)
    model, tokenizer = whisper(), tokeniser()
    features = torch.randn(2, 13, 100)
    with saccade.record(model) as trace:
        output = model.generate(input_features=features, max_new_tokens=7, min_new_tokens=7)
    given = {"tokenizer": tokenizer, "generated": output, "row": 1}
    trace.explore(tmp_path / "page.html", inputs={"input_features": features}, **given)
    page = Page(tmp_path / "page.html")
    cross = "model.decoder.layers.0.encoder_attn"
    rows, columns = page.axes(cross)
    assert (columns["kind"], columns["frames"], columns["seconds"], columns["wav"]) == ("sound", 50, 1.0, None)
    calls = trace.find(cross)
    assert len(rows["pieces"]) == len(calls)
    assert rows["pieces"] == tokenizer.convert_ids_to_tokens(output[1, -len(calls) :].tolist())
    expected = torch.cat([call.weights[1] for call in calls], dim=1)
    torch.testing.assert_close(page.weights(cross, len(calls), 50), expected, rtol=0, atol=2e-4)
    assert page.axes("model.encoder.layers.0.self_attn")[0] == columns
    # A waveform can be played. The model reads a second, the rest of which is silent.
    trace.explore(tmp_path / "page.html", inputs=torch.randn(2, 12_000), **given)
    sound = Page(tmp_path / "page.html").axes(cross)[1]
    assert (sound["frames"], sound["seconds"]) == (50, 1.0)
    assert len(base64.b64decode(sound["wav"])) == 44 + 2 * 16_000


def test_speech_that_ends(tmp_path):
    """Whisper returns neither the start nor the end, and copies its input for every sequence."""
    tokenizer = tokeniser()
    for seed in range(50):
        torch.manual_seed(seed)
        model, features = whisper(), torch.randn(2, 13, 100)
        written = model.generate(input_features=features[:1], max_new_tokens=7, min_new_tokens=7)[0, -7:].tolist()
        if len(set(written)) > 1:  # there is a token that did not come before
            break
    end = next(number for number, token in enumerate(written) if token != written[0])
    model.generation_config.eos_token_id = written[end]
    with saccade.record(model) as trace:
        output = model.generate(input_features=features[:1], max_new_tokens=7)
    given = {"tokenizer": tokenizer, "inputs": {"input_features": features[:1]}}
    trace.explore(tmp_path / "page.html", generated=output, **given)
    pieces = Page(tmp_path / "page.html").axes("model.decoder.layers.0.encoder_attn")[0]["pieces"]
    assert pieces == [*tokenizer.convert_ids_to_tokens(written[:end]), "</s>"]
    given["inputs"] = {"input_features": features}
    with saccade.record(model) as trace:
        options = {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 5, "return_dict_in_generate": True}
        output = model.generate(input_features=features, **options)
    trace.explore(tmp_path / "page.html", generated=output, row=3, **given)
    page = Page(tmp_path / "page.html")
    assert page.notes == []
    encoder = "model.encoder.layers.0.self_attn"
    torch.testing.assert_close(page.weights(encoder, 50, 50), trace[encoder].weights[3], rtol=0, atol=2e-4)


def test_waveforms_of_wav2vec2(tmp_path):
    config = transformers.Wav2Vec2Config(
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=3,
        intermediate_size=31,
        conv_dim=[8, 8, 8],
        conv_kernel=[10, 8, 4],
        conv_stride=[10, 8, 4],
        num_feat_extract_layers=3,
        num_conv_pos_embeddings=5,
        num_conv_pos_embedding_groups=2,
    )
    model = lively(transformers.Wav2Vec2Model(config))
    samples = torch.randn(1, 9_600)
    with torch.no_grad(), saccade.record(model) as trace:
        model(samples)
    trace.explore(tmp_path / "page.html", inputs=samples[0].numpy())
    _, axis = Page(tmp_path / "page.html").axes(trace.paths[0])
    assert (axis["frames"], axis["seconds"]) == (30, 0.6)


@pytest.mark.parametrize(
    ("seconds", "positions", "expected"),
    [(3.0, 1500, 30.0), (29.0, 1500, 30.0), (30.0, 1500, 30.0), (3.0, 149, 3.0), (3.0, 75, 3.0), (45.0, 1500, 30.0)],
)
def test_positions_stand_for_times(seconds, positions, expected):
    assert covered(seconds, positions) == expected
