# A server for one run:
#   docker build -t saccade --build-arg PIP_EXTRA_INDEX_URL=... .
#   docker run -p 8000:8000 -e SACCADE_TOKEN -v ./runs/model:/model:ro saccade
FROM python:3.12-slim AS build

# The compiler stays here: the wheel takes the compiled kernels along.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY saccade saccade
RUN pip wheel --no-deps --wheel-dir /wheels .

FROM python:3.12-slim

# PyTorch's index of CPU builds (see its install page): without it, pip takes the CUDA build, which is ten times as large.
ARG PIP_EXTRA_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1

COPY constraints.txt /
COPY --from=build /wheels /wheels
RUN pip install -c /constraints.txt "$(ls /wheels/*.whl)[images,serve,train]" && rm -r /wheels

RUN useradd --create-home --uid 10001 saccade
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/ready', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["saccade", "serve", "/model", "--host", "0.0.0.0", "--token"]
CMD ["--workers", "2"]
