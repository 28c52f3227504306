"""Many clients on the official Python SDK 1.x at once; `../ts1/crowd.mjs` says what they do.

    python crowd1.py SERVERS CLIENTS CALLS FIRST -- URL
"""

import json
import sys

import anyio
from mcp import ClientSession, McpError, types
from mcp.client.streamable_http import streamable_http_client

SERVERS, CLIENTS, CALLS, FIRST = map(json.loads, sys.argv[1:5])
URL = sys.argv[-1]
INFO = types.Implementation(name="crowd", version="1.0.0")
LISTED, TRIES = 40, 20
done = {"answered": 0, "repeated": 0}
failures = []


async def everything_listed(session):
    missing = True
    with anyio.fail_after(LISTED):
        while missing:
            names = {tool.name for tool in (await session.list_tools()).tools}
            missing = [server["name"] for server in SERVERS if f"{server['name']}__echo" not in names]
            if missing:
                await anyio.sleep(0.5)


async def call_once(session, server, word):
    for tries in range(TRIES):
        try:
            result = await session.call_tool(f"{server['name']}__echo", {server["argument"]: word})
        except McpError as error:
            data = error.error.data
            kind = data.get("outlast", {}).get("kind") if isinstance(data, dict) else None
            if kind not in ("server-gone", "server-failed") or tries == TRIES - 1:
                raise
            done["repeated"] += 1
            await anyio.sleep(0.3)
            continue
        answer = result.model_dump_json()
        if word not in answer or result.isError:
            raise AssertionError(f"{word} was answered with {answer}")
        done["answered"] += 1
        return


async def visit(number):
    try:
        async with streamable_http_client(URL) as (read, write, _):
            async with ClientSession(read, write, client_info=INFO) as session:
                await session.initialize()
                await everything_listed(session)
                for call in range(CALLS):
                    server = SERVERS[(number + call) % len(SERVERS)]
                    await call_once(session, server, f"word-{number}-{call}.")
    except BaseException as error:
        failures.append(repr(error))
        if not isinstance(error, Exception):
            raise


async def main():
    async with anyio.create_task_group() as group:
        for place in range(CLIENTS):
            group.start_soon(visit, FIRST + place)


anyio.run(main)
detail = failures[0] if failures else f"{done['answered']} answers, {done['repeated']} calls made again"
print(json.dumps({"check": "calls", "ok": not failures, "detail": detail}))
sys.exit(1 if failures else 0)
