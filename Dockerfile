# One image for every replica; which one it is comes from QUORATE_ID.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY requirements-server.lock ./
# A virtual environment is one folder to copy, and leaves pip and the build tools out of the image.
RUN python -m venv --without-pip /opt/quorate \
    && pip --python /opt/quorate/bin/python install --no-cache-dir --require-hashes -r requirements-server.lock
COPY . .
# A wheel rather than an editable install: the image holds no source tree.
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && pip --python /opt/quorate/bin/python install --no-cache-dir --no-deps /wheels/*.whl \
    && /opt/quorate/bin/python -m compileall -q /opt/quorate/lib

FROM python:${PYTHON}-slim
# Fixed numbers, so that the owner of a volume stays the same from image to image. The folders are made here
# because a new volume takes its owner from the folder that it is mounted on.
RUN groupadd --gid 10001 quorate \
    && useradd --uid 10001 --gid quorate --no-create-home --shell /usr/sbin/nologin quorate \
    && install -d -o quorate -g quorate -m 0750 /config /data
COPY --from=build /opt/quorate /opt/quorate
ENV PATH=/opt/quorate/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER quorate
EXPOSE 8000
# The opener has no proxies: a proxy that the engine hands to its containers cannot reach this address.
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:8000/v1/health/ready', timeout=2)"]
# All interfaces, for the health check asks 127.0.0.1 and others ask the container's address; so a token is needed.
# Without TLS, for the containers' network is their own; give QUORATE_SERVE_OPTIONS the options of TLS where it is not.
# The shell form expands QUORATE_ID when the container starts; exec hands the stop signal to the replica itself.
CMD exec quorate serve --cluster /config/cluster.toml --id "${QUORATE_ID:?set it to an id of the cluster file}" --data /data --host 0.0.0.0 ${QUORATE_SERVE_OPTIONS:---allow-plain-http}
