# `oltr serve` in a container; docs/serve.md says how to use it.
ARG PYTHON=3.11
FROM python:${PYTHON}-slim

# Where pip finds torch; empty: where it finds everything else, on Linux usually a build for CUDA, of several gigabytes.
ARG TORCH_INDEX=
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1

WORKDIR /opt/oltr
# torch first: its layer stays while the source changes.
COPY constraints.txt ./
RUN pip install --constraint constraints.txt ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch torchvision
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --constraint constraints.txt '.[serve,weights]'

RUN useradd --uid 1000 --create-home oltr && install --directory --owner=oltr /runs
USER oltr
# The root may be read-only: /runs and /tmp are all that is written.
ENV HOME=/tmp
VOLUME /runs
EXPOSE 8000

HEALTHCHECK --start-period=120s --interval=30s --timeout=10s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=5)"]
# Beyond loopback the service starts only with a token: OLTR_TOKEN in the environment.
ENTRYPOINT ["oltr"]
CMD ["serve", "/runs/photos", "--host", "0.0.0.0", "--port", "8000"]
