"""The fixture server on the official Python SDK 1.x; `../README.md` says what each tool does.

With `--http` it listens on a free port and says where.
"""

import json
import sys

import anyio
from fixture import COLOUR, COUNTER, SCHEMAS, State, completions, serve_http
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import AnyUrl


class Fixture(Server):
    def create_initialization_options(self, *args, **kwargs):
        options = super().create_initialization_options(*args, **kwargs)
        # The SDK says no although it serves subscriptions.
        options.capabilities.resources.subscribe = True
        return options


server = Fixture("fixture-py1", version="1.0.0")
state = State()


def say(text):
    return [types.TextContent(type="text", text=str(text))]


async def echo(ctx, text):
    return say(text)


async def slow(ctx, ms):
    await anyio.sleep(ms / 1000)
    return say(f"slept {ms}")


async def progress(ctx, steps, ms):
    token = ctx.meta.progressToken if ctx.meta else None
    for step in range(1, steps + 1):
        if token is not None:
            await ctx.session.send_progress_notification(
                token, step, steps, f"step {step}", related_request_id=ctx.request_id
            )
        # Also after the last report: one that travels with the answer is lost in some SDKs.
        await anyio.sleep(ms / 1000)
    return say(f"done {steps}")


async def ask_sampling(ctx, prompt):
    content = types.TextContent(type="text", text=prompt)
    message = types.SamplingMessage(role="user", content=content)
    answer = await ctx.session.create_message([message], max_tokens=100)
    return say(answer.content.text)


async def ask_elicit(ctx):
    # Over HTTP this question belongs to the call and travels on its stream; the one above does not.
    answer = await ctx.session.elicit_form("Which colour?", COLOUR, ctx.request_id)
    return say(f"{answer.action} {(answer.content or {}).get('colour')}")


async def wait_cancel(ctx):
    try:
        await anyio.sleep(30)
    except anyio.get_cancelled_exc_class():
        state.cancelled += 1
        raise
    return say("never cancelled")


async def was_cancelled(ctx):
    return say(state.cancelled)


async def hang_up(ctx):
    # Without a store for events this SDK has no stream to come back to.
    await anyio.sleep(0.3)
    return say("still here")


async def touch(ctx):
    state.touched += 1
    if COUNTER in state.watched:
        await ctx.session.send_resource_updated(AnyUrl(COUNTER))
    return say(state.touched)


async def log(ctx, level, text):
    if state.wants(level):
        await ctx.session.send_log_message(level, text, "fixture")
    return say("logged")


async def meta(ctx):
    seen = ctx.meta.model_dump(by_alias=True, mode="json", exclude_none=True) if ctx.meta else {}
    seen.pop("progressToken", None)
    return say(json.dumps(seen))


TOOLS = {name: globals()[name] for name in SCHEMAS}


@server.list_tools()
async def list_tools():
    return [types.Tool(name=name, inputSchema=schema) for name, schema in SCHEMAS.items()]


@server.call_tool()
async def call_tool(name, arguments):
    if name not in TOOLS:
        raise ValueError(f"unknown tool {name}")
    return await TOOLS[name](server.request_context, **arguments)


@server.list_resources()
async def list_resources():
    return [types.Resource(name="counter", uri=AnyUrl(COUNTER), mimeType="text/plain")]


@server.read_resource()
async def read_resource(uri):
    return [ReadResourceContents(content=str(state.touched), mime_type="text/plain")]


@server.subscribe_resource()
async def subscribe_resource(uri):
    state.watched.add(str(uri))


@server.unsubscribe_resource()
async def unsubscribe_resource(uri):
    state.watched.discard(str(uri))


@server.list_prompts()
async def list_prompts():
    name = types.PromptArgument(name="name", required=True)
    return [types.Prompt(name="greet", arguments=[name])]


@server.get_prompt()
async def get_prompt(name, arguments):
    content = types.TextContent(type="text", text=f"Hello, {arguments['name']}!")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


@server.completion()
async def completion(ref, argument, context):
    return types.Completion(values=completions(argument.value))


@server.set_logging_level()
async def set_logging_level(level):
    state.level = level


async def serve_stdio():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if "--http" in sys.argv:
    anyio.run(serve_http, StreamableHTTPSessionManager(server))
else:
    anyio.run(serve_stdio)
