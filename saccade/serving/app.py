"""The HTTP interface of a server."""

import asyncio
import gc
import json
import signal
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence, Set
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import Response
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel

import saccade
from saccade.registry import nearest
from saccade.serving.batching import Full, Gone, Unavailable
from saccade.serving.hosting import Hosted
from saccade.serving.inputs import plain
from saccade.serving.metrics import Metrics
from saccade.serving.observing import Observed
from saccade.serving.pauses import spare_collector
from saccade.serving.routes import add_routes
from saccade.serving.schema import known_names, option_classes, options_name
from saccade.serving.security import Guard
from saccade.serving.settings import Settings
from saccade.serving.status import add_status
from saccade.serving.version import BadInput

FORMS = ("list_type", "string_type", "dict_type")
"""Errors of inputs that have another form than one of those they may have."""

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""The host names under which a server without a token may be called."""


LEFT = 499
"""The status in the log for a client that did not wait for its answer, as in nginx."""

SHOWN = 10
"""How many fields of a bad request are named."""


def make_app(
    runs: Mapping[str, Path], *, settings: Settings | None = None, trust: bool = False, local: bool = True
) -> FastAPI:
    """The application that serves these runs, by name. Starting it starts the workers.

    Args:
        runs: the folder of each model.
        settings: limits.
        trust: whether runs may use classes that are not Saccade's.
        local: whether the server is for this machine only: requests must then call it localhost.
    """
    limits, metrics = settings or Settings(), Metrics()
    models = {
        name: Hosted(name, folder, settings=limits, metrics=metrics, trust=trust) for name, folder in runs.items()
    }

    async def start() -> None:
        await asyncio.gather(*(model.start() for model in models.values()))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await start()
        spare_collector()
        app.state.started = True
        with _reloading(models):
            yield
        app.state.started = False
        await asyncio.gather(*(model.close() for model in models.values()))
        gc.unfreeze()

    app = FastAPIOffline(
        title="Saccade",
        version=saccade.__version__,
        description=_described(models),
        lifespan=lifespan,
        redoc_url=None,
        dependencies=[Depends(HTTPBearer(auto_error=False))] if limits.token else [],  # a field for it in /docs
    )
    app.state.started, app.state.models, app.state.start = False, models, start
    bodies = add_routes(app, models, limits)
    add_status(app, models, metrics)
    _add_errors(app, bodies, models)
    if limits.origins:
        headers = ["authorization", "content-type"]
        app.add_middleware(
            CORSMiddleware, allow_origins=list(limits.origins), allow_methods=["GET", "POST"], allow_headers=headers
        )
    hosts = LOCAL if local and limits.token is None else None
    app.add_middleware(Guard, settings=limits, hosts=hosts, busy=lambda: _check_any(models))
    app.add_middleware(Observed, metrics=metrics, log_inputs=limits.log_inputs)
    return app


def _check_any(models: Mapping[str, Hosted]) -> None:
    """Raises `Full` if the queues of all models are full."""
    full: Full | None = None
    for model in models.values():
        try:
            model.version.queue.check(1)
        except Full as error:
            full = error
        else:
            return
    if full is not None:
        raise full


def _described(models: Mapping[str, Hosted]) -> str:
    listed = ", ".join(f"{name} ({type(model.task).__name__.lower()})" for name, model in models.items())
    return f"Models: {listed}. See /info for their cards and options."


def _of_model(errors: Sequence[Any], classes: Set[str], asked: str) -> list[Any]:
    """The errors without those about options of another class than that of the model asked for."""
    others = classes - {asked}
    return [each for each in errors if each["loc"][1:2] != ("options",) or others.isdisjoint(each["loc"][2:3])]


def _of_form(errors: Sequence[Any]) -> list[Any]:
    """The errors without those about forms of `inputs` other than the one it has; one error if it has none of them."""
    about = [each for each in errors if each["loc"][1:2] == ("inputs",) and len(each["loc"]) > 2]
    rest = [each for each in errors if each not in about]
    own = [each for each in about if each["type"] not in FORMS]
    if about and not own:
        message = "Send a text or an object for one input, or a list with one for each answer."
        return [*rest, {**about[0], "loc": ("body", "inputs"), "msg": message, "type": "inputs"}]
    return [*rest, *({**each, "loc": (*each["loc"][:2], *each["loc"][3:])} for each in own)]


def _field(
    error: Mapping[str, Any], body: type[BaseModel] | None, models: Iterable[str], model: str | None
) -> dict[str, Any]:
    place = [part if isinstance(part, int) else str(part)[:60] for part in error["loc"]]
    message = error["msg"]
    if error["type"] == "extra_forbidden" and body is not None:
        message = f"There is no such field.{nearest(str(place[-1]), known_names(body, place[1:-1]))}"
    if error["type"] == "missing" and place[1:] == ["model"]:
        message = f"This server has several models: say which. Choose from: {', '.join(models)}."
    elif error["type"] == "missing":
        message = "This field is missing."
    if place[1:] == ["model"] and model is not None:
        message = f"There is no model {model!r:.60}.{nearest(model, list(models))}"
    if place[1:2] == ["options"] and place[2:3] and place[2] in option_classes(body):  # a name of ours
        del place[2]
    return {"loc": place, "msg": message[:500], "type": error["type"]}


class _reloading:  # noqa: N801 (used as a context)
    """A context in which SIGHUP loads new versions of the run folders."""

    def __init__(self, models: Mapping[str, Hosted]) -> None:
        self.models, self.tasks = models, set[asyncio.Task[bool]]()

    def __enter__(self) -> None:
        with suppress(ValueError, RuntimeError, NotImplementedError):  # not the main thread, or not Unix
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)

    def __exit__(self, *error: object) -> None:
        with suppress(ValueError, RuntimeError, NotImplementedError):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)

    def _reload(self) -> None:
        for model in self.models.values():
            task = asyncio.create_task(model.reload())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)


def _add_errors(app: FastAPI, bodies: Mapping[str, type[BaseModel]], models: Mapping[str, Hosted]) -> None:
    def answer(status: int, detail: Any, headers: dict[str, str] | None = None) -> Response:
        content = json.dumps({"detail": detail})  # in ASCII: it may quote half a character of the client's
        return Response(content, status, headers, media_type="application/json")

    @app.exception_handler(BadInput)
    async def bad(request: Request, error: BadInput) -> Response:
        return answer(422, plain(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        """Names the fields without their values, which JSON cannot always represent and which the client knows."""
        body = bodies.get(request.url.path)
        name = error.body if isinstance(error.body, str) and body is not None else None
        asked = ""
        if name is not None and name in models:
            task = models[name].task
            asked = options_name(task.options, *([task.explain_options] if request.url.path == "/explain" else []))
        found = _of_form(_of_model(error.errors(), option_classes(body), asked))
        return answer(422, [_field(each, body, models, name) for each in found[:SHOWN]])

    @app.exception_handler(Full)
    async def full(request: Request, error: Full) -> Response:
        return answer(429, str(error), {"retry-after": str(error.seconds)})

    @app.exception_handler(Gone)
    async def gone(request: Request, error: Gone) -> Response:
        return answer(LEFT, str(error))

    @app.exception_handler(Unavailable)
    async def unavailable(request: Request, error: Unavailable) -> Response:
        return answer(503, str(error), {"retry-after": "1"})
