"""The same server as a Ray Serve deployment: as many copies as the load requires, on the machines of a cluster."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from saccade.checks import check_count
from saccade.data.extra import required, start_ray
from saccade.serving.app import make_app
from saccade.serving.settings import Settings

NAME = "saccade"


def make_deployment(
    runs: Mapping[str, Path],
    *,
    settings: Settings,
    trust: bool = False,
    local: bool = True,
    min_replicas: int = 1,
    max_replicas: int = 4,
) -> Any:
    """The application as Ray Serve runs it; each replica has its own workers and its own queue.

    Args:
        runs: the folder of each model, on a disk that all machines share.
        settings: the limits of each replica.
        trust, local: as for `make_app`.
        min_replicas, max_replicas: how many copies there are without load, and at most.
    """
    serve = required("ray.serve", "ray")
    check_count("min_replicas", min_replicas)
    check_count("max_replicas", max_replicas, least=min_replicas)
    folders = {name: Path(os.path.abspath(folder)) for name, folder in runs.items()}

    def build() -> FastAPI:  # in the replica: workers and queues do not travel
        return make_app(folders, settings=settings, trust=trust, local=local)

    class Replica:
        """Holds the application."""

    deployment = serve.deployment(
        name=NAME,
        autoscaling_config={
            "min_replicas": min_replicas,
            "max_replicas": max_replicas,
            "target_ongoing_requests": max(1, settings.queue * settings.workers // 4),
        },
        # Above the replica's own bound, so that it is the replica that answers 429.
        max_ongoing_requests=2 * settings.queue * settings.workers,
        graceful_shutdown_timeout_s=settings.deadline + 1,
        ray_actor_options={"num_cpus": settings.workers},
    )
    return deployment(serve.ingress(build)(Replica)).bind()


def serve_on_ray(deployment: Any, *, host: str, port: int) -> None:
    """Serves until SIGTERM or SIGINT, then answers what was accepted.

    Uses the cluster that `RAY_ADDRESS` names or that runs on this machine; otherwise starts one on this machine.
    """
    serve = required("ray.serve", "ray")
    leave = threading.Event()
    ray = start_ray()
    for number in (signal.SIGTERM, signal.SIGINT):  # after Ray has set handlers of its own
        signal.signal(number, lambda *_: leave.set())
    try:
        serve.start(http_options={"host": host, "port": port})
        serve.run(deployment, name=NAME, route_prefix="/")
        leave.wait()
        serve.shutdown()
    finally:
        ray.shutdown()
