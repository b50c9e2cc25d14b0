"""Figures of a server, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The metrics of a server. Each server has its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "saccade_requests_total", "Requests.", ["model", "path", "status"], registry=self.registry
        )
        self.latency = Histogram(
            "saccade_request_seconds",
            "Time from a request to its answer.",
            ["model", "path"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.waiting = Gauge("saccade_queue_inputs", "Waiting inputs.", ["model"], registry=self.registry)
        self.workers = Gauge(
            "saccade_workers_ready", "Workers that are ready to answer.", ["model"], registry=self.registry
        )
        self.batches = Histogram(
            "saccade_batch_inputs", "Inputs per batch.", ["model"], buckets=SIZES, registry=self.registry
        )
        self.restarts = Counter(
            "saccade_worker_restarts_total", "Workers that ended unexpectedly.", ["model"], registry=self.registry
        )

    def text(self) -> bytes:
        """All of them, in the format that Prometheus reads."""
        found: bytes = generate_latest(self.registry)
        return found
