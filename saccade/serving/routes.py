"""The routes of a server's models."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import Body, FastAPI, File, Form, Request, Response, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from saccade.interpretation.explorer.page import page_policy
from saccade.serving.asking import (
    answers,
    checked_options,
    chosen,
    events,
    follow,
    given_options,
    next_event,
    options_of_form,
    read,
)
from saccade.serving.batching import Job
from saccade.serving.hosting import Hosted
from saccade.serving.inputs import Upload
from saccade.serving.json_route import JsonRoute
from saccade.serving.schema import bodies
from saccade.serving.settings import Settings
from saccade.serving.version import BadInput, Version


def add_routes(app: FastAPI, models: Mapping[str, Hosted], limits: Settings) -> dict[str, type[BaseModel]]:
    """Adds /predict, /predict/files, /stream and /explain; returns the bodies that they take, by path."""
    typed = bodies({name: model.task for name, model in models.items()}, limits.max_inputs)
    Predict, Stream, Explain = (typed[name] for name in ("predict", "stream", "explain"))  # noqa: N806 (classes)
    only = next(iter(models)) if len(models) == 1 else None

    async def predict(request: Request, body: Annotated[Predict, Body()]) -> Response:  # type: ignore[valid-type]
        given: Any = body
        inputs = given.inputs if isinstance(given.inputs, list) else [given.inputs]
        model = asked_for(request, given.model, inputs)
        return await predicted(request, model, inputs, given_options(given.options), given.attention)

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
        named = chosen(models, model)
        if len(named.task.inputs) != 1 or not next(iter(named.task.inputs.values())).suffixes:
            raise BadInput(f"files: the model {named.name} cannot answer from files alone; use /predict.")
        contents = [Upload(await file.read(), file.filename) for file in files]
        asked_for(request, model, contents)
        return await predicted(request, named, contents, options_of_form(options), attention, where="files[{}]")

    async def stream(request: Request, body: Annotated[Stream, Body()]) -> Response:  # type: ignore[valid-type]
        given: Any = body
        model = asked_for(request, given.model, [given.input])
        with model.using() as version:
            asked = checked_options(version.task.options, given_options(given.options))
            ((example, size),) = await read(request, version, [given.input], until=(until := model.deadline()))
            job = model.job("stream", (example, asked), cost=size, deadline=until)
            put(request, version, [job])
        first = await next_event(job)  # a mistake in the input is still an error of the request
        return StreamingResponse(
            events(job, first, request.state.request),
            media_type="text/event-stream",
            headers={"cache-control": "no-store"},
        )

    async def explain(request: Request, body: Annotated[Explain, Body()]) -> Response:  # type: ignore[valid-type]
        given: Any = body
        model = asked_for(request, given.model, [given.input])
        options, title = given_options(given.options), f"Attention of {model.name}"
        with model.using() as version:
            own = {field for field in version.task.explain_options.__dataclass_fields__ if field in options}
            checked_options(version.task.explain_options, {name: options[name] for name in own})
            checked_options(version.task.options, {name: value for name, value in options.items() if name not in own})
            ((example, size),) = await read(request, version, [given.input], until=(until := model.deadline()))
            job = model.job("explain", (example, options, given.format, title), cost=size, deadline=until)
            put(request, version, [job])
        (found,) = await answers([job])
        if given.format == "json":
            return Response(found, media_type="application/json")
        policy = {"content-security-policy": f"sandbox allow-scripts; {page_policy()}"}
        return Response(found, media_type="text/html; charset=utf-8", headers=policy)

    def asked_for(request: Request, name: str | None, inputs: Sequence[Any]) -> Hosted:
        """The model of a request, noted for the log."""
        model = chosen(models, name)
        request.state.model, request.state.inputs = model.name, inputs
        return model

    def add(path: str, endpoint: Callable[..., Awaitable[Response]], summary: str, **options: Any) -> None:
        methods = ["POST"]
        app.router.add_api_route(
            path, endpoint, methods=methods, summary=summary, route_class_override=JsonRoute, **options
        )

    add("/predict", predict, "Answer one input, or many")
    add("/stream", stream, "Answer one input, token by token", response_class=StreamingResponse)
    add("/explain", explain, "What the model looked at: data, or the explorer's page")
    return {f"/{name}": body for name, body in typed.items()}


def put(request: Request, version: Version, jobs: list[Job]) -> None:
    """Puts the jobs of a request into the queue, unless its client has left."""
    follow(request, jobs)
    version.queue.put(jobs)


async def predicted(
    request: Request,
    model: Hosted,
    inputs: Sequence[Any],
    options: Mapping[str, Any],
    attention: bool,
    *,
    where: str = "inputs[{}]",
) -> Response:
    """The answers to the inputs of a request, each a separate job, which shares batches with other requests."""
    until = model.deadline()
    with model.using() as version:
        asked = checked_options(version.task.options, options)
        try:
            several = [asked.part([number], len(inputs)) for number in range(len(inputs))]
        except ValueError as error:
            raise BadInput(f"options: {error}") from None
        examples = await read(request, version, inputs, until=until, where=where)
        looks = attention or asked.looks
        jobs = [
            model.job(
                "predict",
                (example, own, looks),
                key=(own, looks) if own.shares else None,
                cost=size * own.rows,
                deadline=until,
            )
            for (example, size), own in zip(examples, several, strict=True)
        ]
        put(request, version, jobs)
    found = await answers(jobs)
    return Response(b'{"predictions":[' + b",".join(found) + b"]}", media_type="application/json")
