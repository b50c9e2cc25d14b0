"""Recording the attention of any PyTorch model."""

from saccade.interpretation.recording.changes import Intervention
from saccade.interpretation.recording.recorder import Recorder, record
from saccade.interpretation.recording.trace import Recorded, Trace

__all__ = ["Intervention", "Recorded", "Recorder", "Trace", "record"]
