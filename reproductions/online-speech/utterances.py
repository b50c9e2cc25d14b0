"""Made-up utterances: phones of random length become sound.

A phone is a chord of a few tones, which runs into its neighbours, with noise. It is written with one letter right after
a vowel and with another one elsewhere, so that its sound alone does not determine the letter. Pauses are not written.
"""

import math
import random
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

PHONES, VOWELS = 16, 5  # the first five phones are vowels
SILENCE = PHONES
SHORTEST, LONGEST = 3, 6  # frames of a phone or a pause
PAUSE = 0.15  # how often a pause follows a phone
RATE, HOP, WINDOW = 4000, 80, 100  # samples per second, from frame to frame, and that a frame hears
TONES, LOWEST, HIGHEST = 3, 150.0, 1800.0  # of a phone, in hertz
DETUNED = 0.02  # the standard deviation of a tone's frequency from one time to the next
NOISE = 0.12  # its standard deviation; a phone's is about 0.2


class Voice(NamedTuple):
    """The tones of each phone: their frequencies (PHONES, TONES), and how loud each is."""

    hertz: Tensor
    loudness: Tensor


class Utterance(NamedTuple):
    """The sound, what is said in letters, the frames up to the end of each letter's phone, a name for each frame."""

    sound: Tensor
    letters: str
    ends: list[int]
    sounds: list[str]


def make_voice(generator: torch.Generator) -> Voice:
    """A random one."""
    hertz = LOWEST * (HIGHEST / LOWEST) ** torch.rand(PHONES, TONES, generator=generator)
    return Voice(hertz, 0.1 + 0.2 * torch.rand(PHONES, TONES, generator=generator))


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
        speak(spoken, durations, noise, voice),
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
    """(frames * HOP,): sounds that fade into each other within half a frame of their borders, with noise."""
    length = sum(durations) * HOP
    time = torch.arange(length)
    sound = NOISE * torch.randn(length, generator=noise)
    start = 0
    for phone, duration in zip(spoken, durations, strict=True):
        end = start + duration * HOP
        if phone != SILENCE:
            fade = ((time - start) / HOP + 0.5).clamp(0.0, 1.0) * ((end - time) / HOP + 0.5).clamp(0.0, 1.0)
            hertz = voice.hertz[phone] * (1.0 + DETUNED * torch.randn(TONES, generator=noise))
            phases = 2 * math.pi * torch.rand(TONES, generator=noise)
            tones = torch.sin(2 * math.pi * hertz[:, None] * time / RATE + phases[:, None])
            sound += fade * (voice.loudness[phone] @ tones)
        start = end
    return sound


def heard_until(frames: int) -> int:
    """How many samples so many frames hear: a frame is centred on its first sample, and hears half a window more."""
    return (frames - 1) * HOP + WINDOW // 2
