"""A client on the official Python SDK 2.x; what it checks is in `checks.py`.

`--era auto` is this SDK's default: it asks `server/discover` first and falls back to `initialize`.
"""

from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from checks import elicited, main, sampled
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

MODERN = "2026-07-28"


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Peer:
    ProtocolError = MCPError

    def __init__(self):
        self.logged = []
        self.send_update, self.updates = anyio.create_memory_object_stream(100)
        self.client = None
        self.era = self.version = self.server_name = self.session_id = None

    async def sample(self, context, params):
        content = types.TextContent(type="text", text=sampled(params.messages[0].content.text))
        return types.CreateMessageResult(role="assistant", model="fixture", content=content)

    async def elicit(self, context, params):
        return types.ElicitResult(action="accept", content=elicited(params.requested_schema))

    async def note_session(self, response):
        # The SDK does not tell its session, and `close` has to know.
        self.session_id = response.headers.get("mcp-session-id", self.session_id)

    async def log(self, params):
        self.logged.append((params.level, params.data))

    async def hear(self, message):
        if isinstance(message, types.ResourceUpdatedNotification) and self.era == "legacy":
            await self.send_update.send(str(message.params.uri))

    async def ping(self):
        return str(plain(await self.client.send_ping()))

    async def discover(self):
        # `session.discover()` would answer from memory.
        found = await self.client.session.send_discover(MODERN)
        offered = " ".join(sorted(found["capabilities"]))
        return f"{' '.join(found['supportedVersions'])}: {offered}"

    async def lists(self):
        client = self.client
        return {
            "tools": plain(await client.list_tools(cache_mode="bypass"))["tools"],
            "resources": plain(await client.list_resources(cache_mode="bypass"))["resources"],
            "prompts": plain(await client.list_prompts(cache_mode="bypass"))["prompts"],
        }

    async def call(self, name, arguments, progress=None, meta=None):
        async def report(value, total, message):
            progress(value)

        heard = report if progress else None
        result = await self.client.call_tool(name, arguments, progress_callback=heard, meta=meta)
        return plain(result)

    async def call_and_cancel(self, name, arguments, after):
        with anyio.move_on_after(after):
            await self.call(name, arguments)
            raise AssertionError("the call was answered")

    async def read_resource(self, uri):
        return plain(await self.client.read_resource(uri, cache_mode="bypass"))

    async def get_prompt(self, name, arguments):
        return plain(await self.client.get_prompt(name, arguments))

    async def complete_prompt(self, name, argument, value):
        ref = types.PromptReference(name=name)
        result = await self.client.complete(ref, {"name": argument, "value": value})
        return result.completion.values

    async def set_level(self, level):
        await self.client.set_logging_level(level)

    @asynccontextmanager
    async def watch(self, uri):
        if self.era == "modern":
            async with self.client.listen(resource_subscriptions=[uri]) as events:

                async def next_update():
                    return (await anext(events)).uri

                yield next_update
            return
        await self.client.subscribe_resource(uri)
        yield self.updates.receive
        await self.client.unsubscribe_resource(uri)


@asynccontextmanager
async def reach(options, peer):
    """What the SDK connects to."""
    if not options.url:
        yield StdioServerParameters(command=options.command, args=options.args)
        return
    async with create_mcp_http_client() as http:
        http.event_hooks = {"response": [peer.note_session]}
        # By default the SDK takes no event beyond 1 MiB, but an answer in plain JSON of any size.
        yield streamable_http_client(options.url, http_client=http, max_sse_event_size=1 << 22)


@asynccontextmanager
async def connect(options):
    peer = Peer()
    async with reach(options, peer) as server, connected(server, options, peer):
        yield peer


@asynccontextmanager
async def connected(server, options, peer):
    client = Client(
        server,
        mode=MODERN if options.era == "modern" else options.era,
        read_timeout_seconds=15,
        sampling_callback=peer.sample,
        elicitation_callback=peer.elicit,
        logging_callback=peer.log,
        message_handler=peer.hear,
        client_info=types.Implementation(name="interop-py2", version="1.0.0"),
    )
    async with client:
        peer.client = client
        peer.version = client.protocol_version
        peer.era = "modern" if client.protocol_version >= MODERN else "legacy"
        info = client.server_info
        peer.server_name = info and info.name
        yield


if __name__ == "__main__":
    main(connect)
