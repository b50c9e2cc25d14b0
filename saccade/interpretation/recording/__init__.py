"""Recording the attention of any PyTorch model, and changing it."""

from saccade.interpretation.recording.changes import Intervention
from saccade.interpretation.recording.interventions import (
    Comparison,
    ablate_head,
    compare,
    knock_out,
    patch,
    uniform,
    use_weights,
)
from saccade.interpretation.recording.missing import Missing
from saccade.interpretation.recording.recorded import Recorded
from saccade.interpretation.recording.recorder import Recorder, record
from saccade.interpretation.recording.trace import Trace

__all__ = [
    "Comparison",
    "Intervention",
    "Missing",
    "Recorded",
    "Recorder",
    "Trace",
    "ablate_head",
    "compare",
    "knock_out",
    "patch",
    "record",
    "uniform",
    "use_weights",
]
