"""The command that puts models on the network: serve."""

from __future__ import annotations

import os
from pathlib import Path

from saccade.registry import nearest
from saccade.serving.settings import Settings

TOKEN = "SACCADE_TOKEN"
ENGINES = ("embedded", "ray")


def serve(
    runs: list[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = Settings.workers,
    queue: int = Settings.queue,
    wait_ms: float = 1e3 * Settings.wait,
    batch_cost: int = Settings.batch_cost,
    deadline: float = Settings.deadline,
    max_body: int = Settings.max_body,
    max_inputs: int = Settings.max_inputs,
    token: bool = False,
    allow_origin: list[str] | None = None,
    log_inputs: bool = False,
    engine: str = "embedded",
    min_replicas: int = 1,
    max_replicas: int = 4,
    trust_classes: bool = False,
) -> None:
    """Serve models over HTTP, with a page to try them.

        saccade serve runs/model
        saccade serve de=runs/de fr=runs/fr --workers 2
        SACCADE_TOKEN=... saccade serve runs/model --host 0.0.0.0 --token
        curl localhost:8000/predict -H 'content-type: application/json' -d '{"inputs": ["le 3 avril 1998"]}'

    Open http://localhost:8000 for the page, and /docs for the API. Inputs that arrive together share a batch. On
    SIGTERM the server answers the requests it has accepted and exits; on SIGHUP it reloads the run folders without
    dropping a request. The log has one JSON object per line, without inputs.

    Args:
        runs: the folder of a trained model, or several as name=folder.
        host: the address to listen on; addresses that other machines can reach need --token.
        port: the port to listen on.
        workers: processes for each model, with one thread each.
        queue: how many inputs per worker may be waiting or being answered; further ones get status 429.
        wait_ms: how long a busy server waits for more inputs to fill a batch; an idle one never waits.
        batch_cost: the maximum number of positions (tokens, frames) in a batch, padding and beam included.
        deadline: seconds after which a request fails.
        max_body: the maximum size of a request in bytes.
        max_inputs: the maximum number of inputs in a request.
        token: require the token in the environment variable SACCADE_TOKEN with every request.
        allow_origin: allow web pages from this origin to call the server; may be given several times.
        log_inputs: write inputs to the log.
        engine: embedded, or ray for a cluster of machines with Ray Serve; the limits above are then those of a replica.
        min_replicas: with --engine ray, how many copies of the server there are without load.
        max_replicas: with --engine ray, how many there are at most.
        trust_classes: allow classes that are not Saccade's, which runs their code.
    """
    from saccade.commands.interrupting import leaving_at_once

    secret = os.environ.get(TOKEN) if token else None
    if token and not secret:
        raise ValueError(f"--token: put the token into the environment variable {TOKEN}.")
    if not 0 <= port <= 65535:
        raise ValueError(f"--port must be from 0 to 65535, got {port}.")
    if engine not in ENGINES:
        raise ValueError(f"--engine: unknown {engine!r}.{nearest(engine, ENGINES)}")
    named = named_runs(runs)
    with leaving_at_once():
        try:
            import fastapi_offline  # noqa: F401
            import prometheus_client  # noqa: F401
            import uvicorn
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"saccade serve needs {error.name}: pip install 'saccade[serve]'") from None
        from saccade.serving.app import make_app
        from saccade.serving.connections import Connection
        from saccade.serving.listening import check_free
        from saccade.serving.logs import log_to_stderr
        from saccade.serving.running import Server
        from saccade.serving.security import is_loopback

    local = is_loopback(host)
    if not local and not token:
        raise ValueError(f"--host {host} can be reached by others: add --token, and set {TOKEN} to the token.")
    settings = Settings(
        workers=workers,
        queue=queue,
        wait=wait_ms / 1e3,
        batch_cost=batch_cost,
        deadline=deadline,
        max_body=max_body,
        max_inputs=max_inputs,
        token=secret,
        origins=tuple(allow_origin or ()),
        log_inputs=log_inputs,
    )
    if engine != "ray" or "RAY_ADDRESS" not in os.environ:  # another machine's ports are not ours to check
        check_free(host, port)
    if engine == "ray":
        from saccade.serving.cluster import make_deployment, serve_on_ray

        replicas = {"min_replicas": min_replicas, "max_replicas": max_replicas}
        deployment = make_deployment(named, settings=settings, trust=trust_classes, local=local, **replicas)
        serve_on_ray(deployment, host=host, port=port)
        return
    app = make_app(named, settings=settings, trust=trust_classes, local=local)
    log_to_stderr()
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=Connection,
        ws="none",
        timeout_graceful_shutdown=int(deadline) + 1,
    )
    Server(config, start=app.state.start).run()


def named_runs(runs: list[str]) -> dict[str, Path]:
    """`de=runs/de` as a name and a folder; a folder alone is named after itself."""
    if not runs:
        raise ValueError("Name the folder of a run: saccade serve runs/model")
    named: dict[str, Path] = {}
    for given in runs:
        name, equals, folder = given.partition("=")
        path = Path(folder if equals else given)
        name = name if equals else path.resolve().name
        if not name or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise ValueError(f"{given!r:.60}: the name of a model may only contain letters, digits, dots, - and _.")
        if name in named:
            raise ValueError(f"Two models are called {name!r}: name them as de=runs/de fr=runs/fr")
        named[name] = path
    return named
