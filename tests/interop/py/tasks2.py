"""Tasks of the modern extension with the client of the official Python SDK 2.x.

    python tasks2.py -- COMMAND...|URL

The SDK has extensions but not this one, so it is written here with what the SDK offers for that: a claim on
`resultType: "task"`, and requests of our own. The server behind outlast knows nothing of tasks; its tools are
those of `../README.md`. Prints one JSON line for each check.
"""

import json
import sys
from typing import Any, Literal

import anyio
import mcp_types as types
from checks import CHECK_LIMIT, same, text, until
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from pydantic import Field

EXTENSION = "io.modelcontextprotocol/tasks"
MODERN = "2026-07-28"


class Handle(types.Result):
    """`CreateTaskResult`."""

    result_type: Literal["task"] = Field("task", alias="resultType")
    task_id: str = Field(alias="taskId")
    status: str
    poll_interval_ms: int = Field(alias="pollIntervalMs")
    ttl_ms: int | None = Field(alias="ttlMs")


class State(types.Result):
    """`GetTaskResult`, and the bare word that answers the other two requests."""

    result_type: Literal["complete"] = Field("complete", alias="resultType")
    status: str | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class TaskRequest(types.Request[dict[str, Any], str]):
    name_param = "taskId"


async def ask(session, method, task_id, **more):
    params = {"taskId": task_id, **more}
    return await session.send_request(TaskRequest(method=method, params=params), State)


async def finished(session, handle):
    """Polls as often as it is told to, until the task has ended."""
    while True:
        state = await ask(session, "tasks/get", handle.task_id)
        if state.status not in ("working", "input_required"):
            return state
        await anyio.sleep(handle.poll_interval_ms / 1000)


class Tasks(ClientExtension):
    identifier = EXTENSION
    resolved = 0

    def claims(self):
        return [ResultClaim(result_type="task", model=Handle, resolve=self.resolve)]

    async def resolve(self, handle, context):
        self.resolved += 1
        state = await finished(context.session, handle)
        return types.CallToolResult.model_validate(state.result)


def plain(result):
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


async def begin(client, name, arguments):
    """Calls a tool that is too slow to be answered plainly."""
    handle = await client.session.call_tool(name, arguments, allow_claimed=True)
    assert isinstance(handle, Handle), f"not a task: {plain(handle)}"
    return handle


async def code(awaitable):
    try:
        await awaitable
    except MCPError as error:
        return error.error.code
    raise AssertionError("no error")


async def cancelled(client):
    return int(text(plain(await client.call_tool("was_cancelled", {}))))


async def check_offered(client, tasks):
    found = await client.session.send_discover(MODERN)
    same(found["capabilities"]["extensions"][EXTENSION], {})
    return "declared"


async def check_fast(client, tasks):
    """What is answered soon stays plain."""
    before = tasks.resolved
    answer = text(plain(await client.call_tool("echo", {"text": "soon"})))
    same(tasks.resolved, before)
    return answer


async def check_slow(client, tasks):
    before = tasks.resolved
    answer = text(plain(await client.call_tool("slow", {"ms": 2500})))
    same(tasks.resolved, before + 1)
    return answer


async def check_poll(client, tasks):
    handle = await begin(client, "slow", {"ms": 2000})
    same(handle.status, "working")
    same((await ask(client.session, "tasks/get", handle.task_id)).status, "working")
    state = await finished(client.session, handle)
    same(state.status, "completed")
    direct = plain(await client.session.call_tool("slow", {"ms": 0}))
    same(sorted(state.result), sorted(direct))
    return text(state.result)


async def check_update(client, tasks):
    """Nothing was asked, so nothing is answered; it is acknowledged all the same."""
    handle = await begin(client, "slow", {"ms": 1500})
    await ask(client.session, "tasks/update", handle.task_id, inputResponses={})
    return text((await finished(client.session, handle)).result)


async def check_cancel(client, tasks):
    before = await cancelled(client)
    handle = await begin(client, "wait_cancel", {})
    await ask(client.session, "tasks/cancel", handle.task_id)
    state = await finished(client.session, handle)

    async def noticed():
        return await cancelled(client) == before + 1

    await until(noticed, "the server noticed the cancel")
    return state.status


async def check_unknown(client, tasks):
    return f"error {await code(ask(client.session, 'tasks/get', '0' * 64))}"


CHECKS = [check_offered, check_fast, check_slow, check_poll, check_update, check_cancel, check_unknown]


async def run(target):
    tasks = Tasks()
    url = target[0].startswith("http")
    server = (
        streamable_http_client(target[0]) if url else StdioServerParameters(command=target[0], args=target[1:])
    )
    failed = False
    info = types.Implementation(name="interop-py2-tasks", version="1.0.0")
    async with Client(server, mode=MODERN, extensions=[tasks], client_info=info) as client:
        for check in CHECKS:
            try:
                with anyio.fail_after(CHECK_LIMIT):
                    ok, detail = True, await check(client, tasks)
            except Exception as error:
                ok, detail, failed = False, f"{type(error).__name__}: {error}", True
            name = check.__name__.removeprefix("check_")
            print(json.dumps({"check": name, "ok": ok, "detail": detail}), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(anyio.run(run, sys.argv[sys.argv.index("--") + 1 :]))
