"""The fixture server on the official Python SDK 2.x; `../README.md` says what each tool does.

It speaks both eras: the first message of the client decides. A legacy client is asked for input by
a request, a modern one by an `input_required` result and a second call. With `--http` it listens on
a free port and says where.
"""

import json
import sys
import warnings

import anyio
import mcp_types as types
from fixture import COLOUR, COUNTER, SCHEMAS, State, completions, serve_http
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

# The SDK calls half of the legacy era deprecated, which is what we are here to offer.
warnings.simplefilter("ignore")

MODERN = "2026-07-28"
state = State()
bus = InMemorySubscriptionBus()


def say(text):
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(text))])


def plain(value):
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return value


async def echo(ctx, params, text):
    return say(text)


async def slow(ctx, params, ms):
    await anyio.sleep(ms / 1000)
    return say(f"slept {ms}")


async def progress(ctx, params, steps, ms):
    for step in range(1, steps + 1):
        await ctx.session.report_progress(step, steps, f"step {step}")
        # Also after the last report: one that travels with the answer is lost in some SDKs.
        await anyio.sleep(ms / 1000)
    return say(f"done {steps}")


async def ask_sampling(ctx, params, prompt):
    content = types.TextContent(type="text", text=prompt)
    messages = [types.SamplingMessage(role="user", content=content)]
    if ctx.protocol_version < MODERN:
        answer = await ctx.session.create_message(messages, max_tokens=100)
        return say(answer.content.text)
    if params.input_responses:
        return say(params.input_responses["sample"].content.text)
    wanted = types.CreateMessageRequestParams(messages=messages, max_tokens=100)
    requests = {"sample": types.CreateMessageRequest(params=wanted)}
    return types.InputRequiredResult(input_requests=requests)


async def ask_elicit(ctx, params):
    if ctx.protocol_version < MODERN:
        # Over HTTP this question belongs to the call and travels on its stream; the one above does not.
        answer = await ctx.session.elicit_form("Which colour?", COLOUR, ctx.request_id)
        return say(f"{answer.action} {(answer.content or {}).get('colour')}")
    if params.input_responses:
        answer = params.input_responses["colour"]
        return say(f"{answer.action} {answer.content['colour']} {params.request_state}")
    wanted = types.ElicitRequestFormParams(message="Which colour?", requested_schema=COLOUR)
    requests = {"colour": types.ElicitRequest(params=wanted)}
    return types.InputRequiredResult(input_requests=requests, request_state="state-42")


async def wait_cancel(ctx, params):
    try:
        await anyio.sleep(30)
    except anyio.get_cancelled_exc_class():
        state.cancelled += 1
        raise
    return say("never cancelled")


async def was_cancelled(ctx, params):
    return say(state.cancelled)


async def hang_up(ctx, params):
    if ctx.close_sse_stream:
        await ctx.close_sse_stream()
    await anyio.sleep(0.3)
    return say("still here")


async def touch(ctx, params):
    state.touched += 1
    await bus.publish(ResourceUpdated(uri=COUNTER))
    if COUNTER in state.watched:
        await ctx.session.send_resource_updated(COUNTER)
    return say(state.touched)


async def log(ctx, params, level, text):
    if ctx.protocol_version >= MODERN or state.wants(level):
        await ctx.session.send_log_message(level, text, "fixture")
    return say("logged")


async def meta(ctx, params):
    seen = {key: plain(value) for key, value in dict(ctx.meta or {}).items()}
    for spelling in ("progressToken", "progress_token"):
        seen.pop(spelling, None)
    return say(json.dumps(seen))


TOOLS = {name: globals()[name] for name in SCHEMAS}


async def list_tools(ctx, params):
    tools = [types.Tool(name=name, input_schema=schema) for name, schema in SCHEMAS.items()]
    return types.ListToolsResult(tools=tools)


async def call_tool(ctx, params):
    if params.name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"unknown tool {params.name}")
    return await TOOLS[params.name](ctx, params, **(params.arguments or {}))


async def list_resources(ctx, params):
    resource = types.Resource(name="counter", uri=COUNTER, mime_type="text/plain")
    return types.ListResourcesResult(resources=[resource])


async def read_resource(ctx, params):
    text = str(state.touched)
    content = types.TextResourceContents(uri=COUNTER, mime_type="text/plain", text=text)
    return types.ReadResourceResult(contents=[content])


async def subscribe_resource(ctx, params):
    state.watched.add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe_resource(ctx, params):
    state.watched.discard(str(params.uri))
    return types.EmptyResult()


async def list_prompts(ctx, params):
    name = types.PromptArgument(name="name", required=True)
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[name])])


async def get_prompt(ctx, params):
    content = types.TextContent(type="text", text=f"Hello, {params.arguments['name']}!")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def completion(ctx, params):
    values = completions(params.argument.value)
    return types.CompleteResult(completion=types.Completion(values=values))


async def set_logging_level(ctx, params):
    state.level = params.level
    return types.EmptyResult()


server = Server(
    "fixture-py2",
    version="1.0.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe_resource,
    on_unsubscribe_resource=unsubscribe_resource,
    on_subscriptions_listen=ListenHandler(bus),
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=completion,
    on_set_logging_level=set_logging_level,
)


class Events(EventStore):
    """What was sent, so that a legacy client whose stream broke can have the rest."""

    def __init__(self):
        self.sent = []

    async def store_event(self, stream_id, message):
        self.sent.append((stream_id, message))
        return str(len(self.sent))

    async def replay_events_after(self, last_event_id, send_callback):
        last = int(last_event_id)
        stream_id = self.sent[last - 1][0]
        for index, (stream, message) in enumerate(self.sent[last:], start=last + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(index)))
        return stream_id


async def serve_stdio():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if "--http" in sys.argv:
    manager = StreamableHTTPSessionManager(server, event_store=Events(), retry_interval=100)
    anyio.run(serve_http, manager)
else:
    anyio.run(serve_stdio)
