"""Features by librosa, in a process of their own: python librosa_features.py FOLDER INPUT.npz OUTPUT.npz.

librosa is in a folder that Python does not search: libraries that use it where they find it would also need soxr, which
it imports for resampling. Nothing is resampled here, so an empty module takes the place of soxr.
"""

import json
import sys
from types import ModuleType

import numpy as np

if __name__ == "__main__":
    folder, given, found = sys.argv[1:]
    sys.path.append(folder)
    sys.modules["soxr"] = ModuleType("soxr")
    import librosa

    features = {}
    with np.load(given) as sounds:
        for name, samples in sounds.items():
            rate, mels, window, hop = json.loads(name)
            size = 1 << (window - 1).bit_length()
            power = librosa.feature.melspectrogram(
                y=samples, sr=rate, n_fft=size, win_length=window, hop_length=hop, n_mels=mels, power=2.0
            )
            features[f"{name} log_mel"] = np.log(np.maximum(power, 1e-10)).T
            for top_db in (None, 80.0):
                decibels = librosa.power_to_db(power, top_db=top_db)
                features[f"{name} mfcc {top_db}"] = librosa.feature.mfcc(S=decibels, n_mfcc=13).T
    np.savez(found, **features)
