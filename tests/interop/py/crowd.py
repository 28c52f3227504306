"""Many clients on an official Python SDK at once; `../js/crowd.mjs` says what they do. Both SDK lines share it.

    python crowd1.py SERVERS CLIENTS CALLS FIRST -- URL
"""

import json
import sys

import anyio

SERVERS, CLIENTS, CALLS, FIRST = map(json.loads, sys.argv[1:5])
URL = sys.argv[-1]
LISTED, TRIES = 40, 40
done = {"answered": 0, "repeated": 0}
failures = []


async def everything_listed(client):
    missing = True
    with anyio.fail_after(LISTED):
        while missing:
            names = await client.names()
            missing = [server["name"] for server in SERVERS if f"{server['name']}__echo" not in names]
            if missing:
                await anyio.sleep(0.5)


async def call_once(client, server, word):
    for tries in range(TRIES):
        try:
            answer = await client.call(f"{server['name']}__echo", {server["argument"]: word})
        except client.ProtocolError as error:
            data = error.error.data
            kind = data.get("outlast", {}).get("kind") if isinstance(data, dict) else None
            if kind not in ("server-gone", "server-failed") or tries == TRIES - 1:
                raise
            done["repeated"] += 1
            await anyio.sleep(0.3)
            continue
        if word not in answer:
            raise AssertionError(f"{word} was answered with {answer}")
        done["answered"] += 1
        return


async def visit(number, connect):
    try:
        async with connect(URL) as client:
            await everything_listed(client)
            for call in range(CALLS):
                server = SERVERS[(number + call) % len(SERVERS)]
                await call_once(client, server, f"word-{number}-{call}.")
    except BaseException as error:
        failures.append(repr(error))
        if not isinstance(error, Exception):
            raise


def crowd(connect):
    """Lets all clients in; `connect(url)` opens one."""

    async def everybody():
        async with anyio.create_task_group() as group:
            for place in range(CLIENTS):
                group.start_soon(visit, FIRST + place, connect)

    anyio.run(everybody)
    detail = failures[0] if failures else f"{done['answered']} answers, {done['repeated']} calls made again"
    print(json.dumps({"check": "calls", "ok": not failures, "detail": detail}))
    sys.exit(1 if failures else 0)
