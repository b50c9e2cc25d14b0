"""The HTTP interface of a server."""

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, File, Form, Request, Response, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from fastapi_offline import FastAPIOffline

import saccade
from saccade.interpretation.explorer.page import page_policy
from saccade.serving.batching import Full, Job, Unavailable
from saccade.serving.hosting import BadInput, Hosted, Version
from saccade.serving.inputs import cost, plain, read_inputs
from saccade.serving.metrics import Metrics
from saccade.serving.observing import Observed
from saccade.serving.schema import bodies
from saccade.serving.security import Guard
from saccade.serving.settings import Settings
from saccade.tasks import Options

PAGE = Path(__file__).parent / "page"
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]", "testserver"})
"""What a request may call a server without a token; the last is how tests call it."""


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

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await asyncio.gather(*(model.start() for model in models.values()))
        app.state.started = True
        with _reloading(models):
            yield
        app.state.started = False
        await asyncio.gather(*(model.close() for model in models.values()))

    app = FastAPIOffline(
        title="Saccade", version=saccade.__version__, description=_described(models), lifespan=lifespan, redoc_url=None
    )
    app.state.started, app.state.models = False, models
    _add_routes(app, models, limits, metrics)
    _add_errors(app)
    if limits.origins:
        headers = ["authorization", "content-type"]
        app.add_middleware(
            CORSMiddleware, allow_origins=list(limits.origins), allow_methods=["GET", "POST"], allow_headers=headers
        )
    hosts = LOCAL if local and limits.token is None else None
    app.add_middleware(Guard, token=limits.token, hosts=hosts, max_body=limits.max_body)
    app.add_middleware(Observed, metrics=metrics, log_inputs=limits.log_inputs)
    return app


def _add_routes(app: FastAPI, models: dict[str, Hosted], limits: Settings, metrics: Metrics) -> None:
    typed = bodies({name: model.task for name, model in models.items()}, limits.max_inputs)
    Predict, Stream, Explain = (typed[name] for name in ("predict", "stream", "explain"))  # noqa: N806 (classes)
    only = next(iter(models)) if len(models) == 1 else None

    @app.post("/predict", summary="Answer one input, or many")
    async def predict(request: Request, body: Annotated[Predict, Body()]) -> Response:  # type: ignore[valid-type]
        given: Any = body
        inputs = given.inputs if isinstance(given.inputs, list) else [given.inputs]
        return await answered(request, given.model, inputs, _set(given.options), given.attention)

    @app.post("/predict/files", summary="Answer files: recordings, pictures")
    async def predict_files(
        request: Request,
        files: Annotated[list[UploadFile], File(description="One input each.")],
        options: Annotated[str, Form(description="The options, as JSON.")] = "{}",
        model: Annotated[str | None, Form()] = only,
        attention: Annotated[bool, Form()] = False,
    ) -> Response:
        if len(files) > limits.max_inputs:
            raise BadInput(f"files: at most {limits.max_inputs} in a request, got {len(files)}.")
        chosen = _chosen(models, model)
        if len(chosen.task.inputs) != 1 or not next(iter(chosen.task.inputs.values())).suffixes:
            raise BadInput(f"files: the model {chosen.name} reads no files; use /predict.")
        contents = [await file.read() for file in files]
        return await answered(request, chosen.name, contents, _object(options), attention, decoded=True)

    async def answered(
        request: Request, name: str | None, inputs: list[Any], options: dict[str, Any], attention: bool, **read: Any
    ) -> Response:
        model = _chosen(models, name)
        version = model.version
        request.state.model, request.state.inputs = model.name, inputs
        asked = _asked(version.task.options, options)
        several = [asked.part([number], len(inputs)) for number in range(len(inputs))]
        examples = await asyncio.to_thread(_examples, version, inputs, **read)
        jobs = [
            model.job("predict", (example, own, attention), key=(repr(own), attention), cost=size)
            for (example, size), own in zip(examples, several, strict=True)
        ]
        found = await _done(version, jobs)
        return Response(b'{"predictions":[' + b",".join(found) + b"]}", media_type="application/json")

    @app.post("/stream", summary="Answer one input, token by token", response_class=StreamingResponse)
    async def stream(request: Request, body: Annotated[Stream, Body()]) -> Response:  # type: ignore[valid-type]
        given: Any = body
        model = _chosen(models, given.model)
        version = model.version
        request.state.model, request.state.inputs = model.name, [given.input]
        asked = _asked(version.task.options, _set(given.options))
        ((example, size),) = await asyncio.to_thread(_examples, version, [given.input])
        job = model.job("stream", (example, asked), cost=size)
        version.queue.put([job])
        first = await _next(job)  # a mistake in the input is still an error of the request
        return StreamingResponse(
            _events(job, first), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    @app.post("/explain", summary="What the model looked at: data, or the explorer's page")
    async def explain(request: Request, body: Annotated[Explain, Body()]) -> Response:  # type: ignore[valid-type]
        given: Any = body
        model = _chosen(models, given.model)
        version = model.version
        request.state.model, request.state.inputs = model.name, [given.input]
        options = _set(given.options)
        own = {field for field in version.task.explain_options.__dataclass_fields__ if field in options}
        _asked(version.task.explain_options, {name: options[name] for name in own})
        _asked(version.task.options, {name: value for name, value in options.items() if name not in own})
        ((example, size),) = await asyncio.to_thread(_examples, version, [given.input])
        job = model.job("explain", (example, options, given.format, f"Attention of {model.name}"), cost=size)
        (found,) = await _done(version, [job])
        kind = "application/json" if given.format == "json" else "text/html; charset=utf-8"
        headers = (
            {} if given.format == "json" else {"content-security-policy": f"sandbox allow-scripts; {page_policy()}"}
        )
        return Response(found, media_type=kind, headers=headers)

    @app.get("/info", summary="The models: what they read and answer, their options, their cards")
    async def info() -> dict[str, Any]:
        return {"version": saccade.__version__, "models": {name: _about(model) for name, model in models.items()}}

    @app.get("/health", summary="Whether the server runs")
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
            metrics.waiting.labels(name).set(len(model.version.queue.waiting))
            metrics.workers.labels(name).set(model.version.ready)
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    for path, file in (("/", "live.html"), ("/live.js", "live.js"), ("/live.css", "live.css")):
        app.add_api_route(path, _sending(PAGE / file), include_in_schema=False)


def _sending(file: Path) -> Callable[[], Awaitable[Response]]:
    async def send() -> Response:
        return FileResponse(file, headers={"cache-control": "no-cache"})

    return send


def _chosen(models: dict[str, Hosted], name: str | None) -> Hosted:
    if name is None or name not in models:
        raise BadInput(f"model: choose from {', '.join(models)}; got {name!r:.60}.")
    return models[name]


def _set(options: Any) -> dict[str, Any]:
    """The options of a body that were given."""
    return {} if isinstance(options, dict) else options.model_dump(exclude_unset=True)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadInput("options: must be a JSON object.")
    return found


def _asked(kind: type[Options], given: Mapping[str, Any]) -> Options:
    try:
        return kind.of(given)
    except (ValueError, TypeError) as error:
        raise BadInput(f"options: {error}") from None


def _examples(version: Version, inputs: list[Any], *, decoded: bool = False) -> list[tuple[Any, int]]:
    """The examples that inputs stand for, with their costs."""
    examples = version.read(inputs) if decoded else read_inputs(version, inputs)
    return [(example, cost(version, example)) for example in examples]


async def _done(version: Version, jobs: list[Job]) -> list[bytes]:
    """The answers to all jobs; if one has none, the others are not waited for."""
    version.queue.put(jobs)
    try:
        async with asyncio.timeout(jobs[0].deadline - time.monotonic()):
            return list(await asyncio.gather(*(job.answer for job in jobs)))
    except TimeoutError:
        raise Unavailable("The answer was not ready in time.") from None
    finally:
        for job in jobs:
            if not job.answer.done():
                job.answer.cancel()
            elif not job.answer.cancelled():
                job.answer.exception()  # seen, even where another one was reported


async def _next(job: Job) -> bytes | None:
    """The next event of a stream; None once the answer is there, which may be an error."""
    event: asyncio.Future[bytes] = asyncio.ensure_future(job.events.get())
    try:
        await asyncio.wait({event, job.answer}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        job.answer.cancel()
        raise
    if event.done():
        return event.result()
    event.cancel()
    job.answer.result()
    return None


async def _events(job: Job, first: bytes | None) -> AsyncIterator[bytes]:
    """A stream as server-sent events: `token` for each token, then `answer` or `error`."""
    try:
        event = first
        while event is not None:
            yield b"event: token\ndata: " + event + b"\n\n"
            event = await _next(job)
        yield b"event: answer\ndata: " + job.answer.result() + b"\n\n"
    except (Unavailable, BadInput, RuntimeError) as error:
        told = str(error) if not isinstance(error, RuntimeError) else "The server made a mistake."
        yield b"event: error\ndata: " + json.dumps({"detail": told}).encode() + b"\n\n"
    finally:
        job.answer.cancel()


def _about(model: Hosted) -> dict[str, Any]:
    task, version = model.task, model.version
    card = version.folder / "README.md"
    inputs = {
        role: {"field": type(field).__name__.lower(), "files": list(field.suffixes)}
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


def _described(models: Mapping[str, Hosted]) -> str:
    listed = ", ".join(f"{name} ({type(model.task).__name__.lower()})" for name, model in models.items())
    return f"Models: {listed}. See /info for their cards and options."


class _reloading:  # noqa: N801 (used as a context)
    """Within it, SIGHUP takes over new versions of the run folders."""

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


def _add_errors(app: FastAPI) -> None:
    def answer(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"detail": detail}, status, headers)

    @app.exception_handler(BadInput)
    async def bad(request: Request, error: BadInput) -> JSONResponse:
        return answer(422, plain(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        """Names the fields, without the values: JSON cannot hold them all, and they are the client's own."""
        named = [{"loc": each["loc"], "msg": each["msg"], "type": each["type"]} for each in error.errors()]
        return JSONResponse({"detail": named}, 422)

    @app.exception_handler(Full)
    async def full(request: Request, error: Full) -> JSONResponse:
        return answer(429, str(error), {"retry-after": str(error.seconds)})

    @app.exception_handler(Unavailable)
    async def unavailable(request: Request, error: Unavailable) -> JSONResponse:
        return answer(503, str(error), {"retry-after": "1"})
