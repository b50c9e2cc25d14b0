"""Utterances that are made: phones of random length become noisy frames, and frames symbols of a codebook.

A phone is written with one letter right after a vowel and with another one elsewhere, so that frames alone do not say
what the letter is. Pauses are not written.
"""

import random
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

PHONES, VOWELS = 16, 5  # the first five phones are vowels
SILENCE = PHONES
SHORTEST, LONGEST = 3, 6  # frames of a phone or a pause
PAUSE = 0.15  # how often a pause follows a phone
FEATURES, CODES = 8, 64  # of a frame, and of the codebook
NOISE = 0.35  # its standard deviation; that of the phones is 1
BLEND = 0.3  # of the neighbour in the frame at the border of two sounds


class Voice(NamedTuple):
    """What a frame of each sound is without noise (PHONES + 1, FEATURES), and the codebook (CODES, FEATURES)."""

    prototypes: Tensor
    codebook: Tensor


class Utterance(NamedTuple):
    """Frames as symbols, what is said in letters, the frames up to the end of each letter's phone, a name a frame."""

    frames: str
    letters: str
    ends: list[int]
    sounds: list[str]


def make_voice(generator: torch.Generator) -> Voice:
    """A random one; its codebook are frames that it spoke."""
    prototypes = torch.randn(PHONES + 1, FEATURES, generator=generator)
    spoken = torch.randint(PHONES + 1, (CODES,), generator=generator)
    return Voice(prototypes, prototypes[spoken] + NOISE * torch.randn(CODES, FEATURES, generator=generator))


def make_utterance(choices: random.Random, noise: torch.Generator, voice: Voice, phones: int) -> Utterance:
    """A random one of so many phones, between pauses."""
    spoken = [SILENCE]
    for _ in range(phones):
        spoken.append(choices.choice([phone for phone in range(PHONES) if phone != spoken[-1]]))
        if choices.random() < PAUSE:
            spoken.append(SILENCE)
    if spoken[-1] != SILENCE:
        spoken.append(SILENCE)
    durations = [choices.randint(SHORTEST, LONGEST) for _ in spoken]
    ends = list(accumulate(durations))
    written = [place for place, sound in enumerate(spoken) if sound != SILENCE]
    return Utterance(
        " ".join(f"c{code}" for code in quantised(speak(spoken, durations, noise, voice), voice.codebook)),
        " ".join(letter(spoken[place], spoken[place - 1]) for place in written),
        [ends[place] for place in written],
        [name(sound) for sound, duration in zip(spoken, durations, strict=True) for _ in range(duration)],
    )


def letter(phone: int, before: int) -> str:
    """How a phone is written after another sound."""
    return f"{name(phone)}{'+' if before < VOWELS else ''}"


def name(sound: int) -> str:
    """Of a vowel, a consonant or a pause."""
    return "-" if sound == SILENCE else f"v{sound}" if sound < VOWELS else f"k{sound}"


def speak(spoken: list[int], durations: list[int], noise: torch.Generator, voice: Voice) -> Tensor:
    """(frames, FEATURES): sounds that run into their neighbours, with noise."""
    here, beside = [], []
    for place, (sound, duration) in enumerate(zip(spoken, durations, strict=True)):
        here += [sound] * duration
        before, after = spoken[max(place - 1, 0)], spoken[min(place + 1, len(spoken) - 1)]
        beside += [before, *[sound] * (duration - 2), after]
    clean = (1 - BLEND) * voice.prototypes[here] + BLEND * voice.prototypes[beside]
    return clean + NOISE * torch.randn(clean.shape, generator=noise)


def quantised(frames: Tensor, codebook: Tensor) -> list[int]:
    """The nearest code of each frame."""
    nearest: list[int] = torch.cdist(frames, codebook).argmin(dim=1).tolist()
    return nearest
