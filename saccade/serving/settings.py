"""How a server works."""

from __future__ import annotations

from dataclasses import dataclass

from saccade.checks import check_count


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The limits of a server.

    Args:
        workers: processes for each model, with one thread each.
        queue: how many inputs per worker may be waiting or being answered; further ones get status 429.
        wait: seconds that a busy server waits for more inputs to fill a batch; an idle one never waits.
        batch_cost: the maximum number of positions in a batch, including padding and the hypotheses of a beam, unless a
            single input has more.
        deadline: seconds after which a request fails with status 503.
        max_body: the maximum size of a request in bytes.
        max_inputs: the maximum number of inputs in a request.
        token: requests must send it as `Authorization: Bearer TOKEN`; None lets anyone use the server.
        origins: web pages of other origins that may call the server (CORS).
        log_inputs: whether inputs are written to the log.
    """

    workers: int = 1
    queue: int = 32
    wait: float = 0.005
    batch_cost: int = 16_384
    deadline: float = 30.0
    max_body: int = 16 * 2**20
    max_inputs: int = 256
    token: str | None = None
    origins: tuple[str, ...] = ()
    log_inputs: bool = False

    def __post_init__(self) -> None:
        for name in ("workers", "queue", "batch_cost", "max_body", "max_inputs"):
            check_count(name, getattr(self, name))
        if not 0.0 <= self.wait <= 10.0:
            raise ValueError(f"wait must be from 0 to 10 seconds, got {self.wait}.")
        if not 0.0 < self.deadline <= 86_400.0:
            raise ValueError(f"deadline must be above 0 and at most 86400 seconds, got {self.deadline}.")
        if self.token is not None and len(self.token) < 16:
            raise ValueError("The token must have 16 characters or more: anyone could guess a shorter one.")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ValueError("The token must be printable ASCII, in one line: it is sent in a header.")
