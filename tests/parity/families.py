"""Tiny random Hugging Face models of many families."""

from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from torch import nn

COMMON = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 37,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {"num_key_value_heads": 2}
SEQ2SEQ = {
    "vocab_size": 61,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 41,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
    "forced_eos_token_id": None,
    "forced_bos_token_id": None,
}
T5 = {
    "vocab_size": 61,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 37,
    "num_layers": 2,
    "num_heads": 4,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
}
PICTURE = {
    "hidden_size": 32,
    "intermediate_size": 37,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 12,
    "patch_size": 4,
}
SPEECH = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 37,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "conv_dim": (8, 8),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 3),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 4,
}


@dataclass(frozen=True)
class Family:
    """One family of models.

    Args:
        name: of the classes: its configuration is `<name>Config`.
        model: the name of the model's class.
        options: of its configuration.
        kind: "decoder", "encoder", "seq2seq", "picture", "speech" or "sounds to text".
        attention: the implementation to record.
        window: the size of its sliding window, if it has one.
        cannot: ways to generate that `transformers` refuses for it.
        warning: what `record` warns of, for those whose attention it does not see.
    """

    name: str
    model: str
    options: dict[str, Any] = field(default_factory=dict)
    kind: str = "decoder"
    attention: str = "sdpa"
    window: int | None = None
    cannot: tuple[str, ...] = ()
    warning: str | None = None


def decoder(name: str, *, model: str = "", **options: Any) -> Family:
    own = {key: options.pop(key) for key in ("attention", "window", "cannot", "warning") if key in options}
    return Family(name, model or f"{name}ForCausalLM", {**COMMON, **options}, "decoder", **own)


def encoder(name: str, **options: Any) -> Family:
    own = {key: options.pop(key) for key in ("attention", "warning") if key in options}
    return Family(name, f"{name}Model", {**COMMON, **options}, "encoder", **own)


def seq2seq(name: str, *, base: dict[str, Any] = SEQ2SEQ, model: str = "", **options: Any) -> Family:
    own = {key: options.pop(key) for key in ("attention", "warning", "cannot") if key in options}
    return Family(name, model or f"{name}ForConditionalGeneration", {**base, **options}, "seq2seq", **own)


def picture(name: str, **options: Any) -> Family:
    own = {key: options.pop(key) for key in ("attention", "warning", "model") if key in options}
    model = own.pop("model", f"{name}Model")
    return Family(name, model, {**PICTURE, **options}, "picture", **own)


def speech(name: str, **options: Any) -> Family:
    own = {key: options.pop(key) for key in ("attention", "warning") if key in options}
    return Family(name, f"{name}Model", {**SPEECH, **options}, "speech", **own)


LAYERS = {"layer_types": ["sliding_attention", "full_attention"]}
FAMILIES = [
    decoder("GPT2", model="GPT2LMHeadModel", n_inner=37),
    decoder("GPTNeoX", intermediate_size=37),
    decoder("GPTJ", rotary_dim=4, attention="eager"),
    decoder(
        "GPTNeo", attention_types=[[["global", "local"], 1]], window_size=5, attention="eager", cannot=("static",)
    ),  # its mask takes the end of the cache for the end of the text
    decoder("GPTBigCode"),
    decoder("Bloom", attention="eager"),
    decoder("OPT", ffn_dim=37, word_embed_proj_dim=32),
    decoder("Falcon", new_decoder_architecture=True, num_kv_heads=2),
    decoder("Llama", **GROUPED),
    decoder("Mistral", **GROUPED, sliding_window=5, window=5),
    decoder("Mixtral", **GROUPED, intermediate_size=48, num_local_experts=2, num_experts_per_tok=1),
    decoder("Qwen2", **GROUPED),
    decoder("Qwen3", **GROUPED, head_dim=8),
    decoder(
        "Qwen2Moe",
        **GROUPED,
        num_experts=2,
        num_experts_per_tok=1,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=32,
    ),
    decoder("Gemma", **GROUPED, head_dim=8),
    decoder("Gemma2", **GROUPED, head_dim=8, sliding_window=5, window=5, attention="eager", **LAYERS),
    decoder("Gemma3Text", **GROUPED, head_dim=8, sliding_window=5, window=5, model="Gemma3ForCausalLM", **LAYERS),
    decoder("Phi", **GROUPED),
    decoder("Phi3", **GROUPED),
    decoder("StableLm", **GROUPED),
    decoder("Starcoder2", **GROUPED, sliding_window=5, window=5),
    decoder("Cohere", **GROUPED),
    decoder("Cohere2", **GROUPED, sliding_window=5, window=5, **LAYERS),
    decoder("Olmo", **GROUPED),
    decoder("Olmo2", **GROUPED),
    decoder("Granite", **GROUPED),
    decoder("Glm", **GROUPED, head_dim=8),
    decoder(
        "GptOss",
        **GROUPED,
        head_dim=8,
        intermediate_size=48,
        num_local_experts=2,
        num_experts_per_tok=1,
        sliding_window=5,
        window=5,
        attention="eager",
        **LAYERS,
    ),
    decoder("Mpt", d_model=32, n_heads=4, n_layers=2, attention="eager", cannot=("beams", "assisted")),
    decoder("CodeGen", rotary_dim=4, n_inner=37, attention="eager"),
    decoder("XGLM", d_model=32, num_layers=2, attention_heads=4, ffn_dim=37, attention="eager"),
    decoder("BioGpt"),
    decoder("Persimmon"),
    decoder("Nemotron", **GROUPED),
    decoder("SmolLM3", **GROUPED),
    decoder(
        "MiniMax",
        **GROUPED,
        intermediate_size=48,
        num_local_experts=2,
        num_experts_per_tok=1,
        cannot=(),
        layer_types=["linear_attention", "full_attention"],
        warning="MiniMaxLightningAttention",
    ),
    encoder("Bert"),
    encoder("Roberta"),
    encoder("Electra", embedding_size=16),
    encoder("Albert", embedding_size=16, num_hidden_groups=1),
    encoder("DistilBert", dim=32, n_heads=4, n_layers=2, hidden_dim=37),
    encoder("MPNet", attention="eager"),
    encoder("DebertaV2", attention="eager", relative_attention=True, pos_att_type=["p2c", "c2p"]),
    encoder("ModernBert", local_attention=4),
    encoder("ConvBert", attention="eager", embedding_size=16),
    encoder("RoFormer", attention="eager", embedding_size=16),
    Family(
        "XLNet",
        "XLNetModel",
        {"vocab_size": 61, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 37},
        "encoder",
        "eager",
    ),
    encoder("CLIPText"),
    encoder("Longformer", attention="eager", attention_window=4, warning="LongformerSelfAttention"),
    encoder("BigBird", attention="eager", block_size=2, num_random_blocks=1, warning="blocks"),
    encoder("Nystromformer", attention="eager"),
    seq2seq("Bart"),
    seq2seq("MBart"),
    seq2seq("Marian", model="MarianMTModel"),
    seq2seq("Pegasus"),
    seq2seq("M2M100"),
    seq2seq("Blenderbot"),
    seq2seq("T5", base=T5, attention="eager"),
    seq2seq("MT5", base=T5, attention="eager"),
    seq2seq("LongT5", base=T5, attention="eager", local_radius=3),
    seq2seq("UMT5", base=T5, attention="eager"),
    seq2seq(
        "LED",
        attention="eager",
        attention_window=4,
        max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64,
        warning="LEDEncoderSelfAttention",
    ),
    Family(
        "Reformer",
        "ReformerModel",
        {
            **COMMON,
            "attn_layers": ["local", "lsh"],
            "attention_head_size": 8,
            "feed_forward_size": 37,
            "local_attn_chunk_length": 4,
            "lsh_attn_chunk_length": 4,
            "num_buckets": 2,
            "axial_pos_embds": False,
            "hash_seed": 5,
            "is_decoder": False,
            "num_hashes": 1,
        },
        "encoder",
        "eager",
        warning="LSHSelfAttention",
    ),
    picture("ViT"),
    picture("DeiT"),
    picture("Dinov2", mlp_ratio=2),
    picture("Beit"),
    picture("CLIPVision", model="CLIPVisionModel"),
    picture("SiglipVision", model="SiglipVisionModel"),
    Family(
        "Swin",
        "SwinModel",
        {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 3, "image_size": 24, "patch_size": 4},
        "picture",
        "eager",
    ),
    picture(
        "Segformer",
        attention="eager",
        hidden_sizes=[8, 16],
        num_attention_heads=[1, 2],
        depths=[1, 1],
        num_encoder_blocks=2,
        sr_ratios=[2, 1],
        patch_sizes=[3, 3],
        strides=[2, 2],
        mlp_ratios=[2, 2],
    ),
    speech("Wav2Vec2"),
    speech("Hubert"),
    speech("WavLM", attention="eager"),
    speech("SEW", squeeze_factor=1),
    Family(
        "Whisper",
        "WhisperForConditionalGeneration",
        {
            **SEQ2SEQ,
            "num_mel_bins": 8,
            "max_source_positions": 13,
            "max_target_positions": 64,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
        "sounds to text",
    ),
    Family(
        "SpeechT5",
        "SpeechT5ForSpeechToText",
        {
            **SPEECH,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 37,
            "decoder_ffn_dim": 41,
            "encoder_max_relative_position": 10,
        },
        "sounds to text",
        "eager",
    ),
]


def config_of(family: Family) -> Any:
    return getattr(transformers, f"{family.name}Config")(**family.options)


def build(family: Family, attention: str) -> nn.Module:
    """The model with random weights, the same for each implementation of attention."""
    torch.manual_seed(7)
    config = config_of(family)
    model = getattr(transformers, family.model)._from_config(config, attn_implementation=attention).eval()
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            if parameter.dim() > 1 and "norm" not in name:  # so that attention has something to choose
                parameter.normal_(std=0.3, generator=generator)
    return model
