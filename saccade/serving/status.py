"""What a server says about itself and its models, and its page."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse

import saccade
from saccade.fields import plain
from saccade.serving.hosting import Hosted
from saccade.serving.metrics import Metrics
from saccade.serving.schema import bodies

PAGE = Path(__file__).parent / "page"


def add_status(app: FastAPI, models: Mapping[str, Hosted], metrics: Metrics) -> None:
    """Adds /info, /health, /ready, /metrics and the live page."""

    @app.get("/info", summary="The models: what they read and answer, their options, their cards")
    async def info() -> dict[str, Any]:
        return {"version": saccade.__version__, "models": {name: _about(model) for name, model in models.items()}}

    @app.get("/health", summary="Whether the server is up")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready", summary="Whether every model can answer")
    async def ready(response: Response) -> dict[str, Any]:
        workers = {name: model.version.ready for name, model in models.items()}
        fit = app.state.started and all(workers.values())
        response.status_code = 200 if fit else 503
        return {"ready": fit, "workers": workers}

    @app.get("/metrics", summary="Figures for Prometheus")
    async def figures() -> Response:
        for name, model in models.items():
            queue = model.version.queue
            metrics.waiting.labels(name).set(len(queue.waiting) + queue.reserved)
            metrics.workers.labels(name).set(model.version.ready)
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    for path, file in (("/", "live.html"), ("/live.js", "live.js"), ("/live.css", "live.css")):
        app.add_api_route(path, _sending(PAGE / file), include_in_schema=False)


def _sending(file: Path) -> Callable[[], Awaitable[Response]]:
    async def send() -> Response:
        return FileResponse(file, headers={"cache-control": "no-cache"})

    return send


def _about(model: Hosted) -> dict[str, Any]:
    task, version = model.task, model.version
    card = version.folder / "README.md"
    inputs = {
        role: {
            "field": type(plain(field)).__name__.lower(),
            "files": list(field.suffixes),
            "optional": field.optional,
        }
        for role, field in task.inputs.items()
    }
    options = bodies({model.name: task}, 1)["predict"].model_json_schema()
    return {
        "task": type(task).__name__.lower(),
        "model": version.model_name,
        "parameters": version.parameters,
        "inputs": inputs,
        "targets": list(task.targets),
        "metrics": list(task.metrics),
        "options": options.get("$defs", {}).get(task.options.__name__, {}).get("properties", {}),
        "card": card.read_text(encoding="utf-8", errors="replace") if card.is_file() else "",
    }
