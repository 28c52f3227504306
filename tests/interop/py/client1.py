"""A client on the official Python SDK 1.x; what it checks is in `checks.py`."""

from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
from checks import elicited, main, sampled
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Peer:
    ProtocolError = McpError
    era = "legacy"

    def __init__(self):
        self.logged = []
        self.send_update, self.updates = anyio.create_memory_object_stream(100)
        self.session = None
        self.version = self.server_name = self.session_id = None

    async def sample(self, context, params):
        content = types.TextContent(type="text", text=sampled(params.messages[0].content.text))
        return types.CreateMessageResult(role="assistant", model="fixture", content=content)

    async def elicit(self, context, params):
        return types.ElicitResult(action="accept", content=elicited(params.requestedSchema))

    async def log(self, params):
        self.logged.append((params.level, params.data))

    async def hear(self, message):
        if isinstance(message, types.ServerNotification):
            if isinstance(message.root, types.ResourceUpdatedNotification):
                await self.send_update.send(str(message.root.params.uri))

    async def ping(self):
        return str(plain(await self.session.send_ping()))

    async def lists(self):
        session = self.session
        return {
            "tools": plain(await session.list_tools())["tools"],
            "resources": plain(await session.list_resources())["resources"],
            "prompts": plain(await session.list_prompts())["prompts"],
        }

    async def call(self, name, arguments, progress=None, meta=None):
        async def report(value, total, message):
            progress(value)

        heard = report if progress else None
        result = await self.session.call_tool(name, arguments, progress_callback=heard, meta=meta)
        return plain(result)

    async def call_within(self, seconds, name, arguments):
        limit = timedelta(seconds=seconds)
        return plain(await self.session.call_tool(name, arguments, read_timeout_seconds=limit))

    async def call_and_cancel(self, name, arguments, after):
        # This SDK drops a cancelled call without a word, so the word is sent here.
        request_id = self.session._request_id
        with anyio.move_on_after(after):
            await self.call(name, arguments)
            raise AssertionError("the call was answered")
        params = types.CancelledNotificationParams(requestId=request_id, reason="interop")
        notification = types.CancelledNotification(params=params)
        await self.session.send_notification(types.ClientNotification(notification))

    async def read_resource(self, uri):
        return plain(await self.session.read_resource(uri))

    async def get_prompt(self, name, arguments):
        return plain(await self.session.get_prompt(name, arguments))

    async def complete_prompt(self, name, argument, value):
        ref = types.PromptReference(type="ref/prompt", name=name)
        result = await self.session.complete(ref, {"name": argument, "value": value})
        return result.completion.values

    async def set_level(self, level):
        await self.session.set_logging_level(level)

    @asynccontextmanager
    async def watch(self, uri):
        await self.session.subscribe_resource(uri)
        yield self.updates.receive
        await self.session.unsubscribe_resource(uri)


@asynccontextmanager
async def connect(options):
    assert options.era != "modern", "SDK 1.x speaks the legacy era only"
    peer = Peer()
    if options.url:
        transport = streamable_http_client(options.url)
    else:
        transport = stdio_client(StdioServerParameters(command=options.command, args=options.args))
    async with transport as (read, write, *session_id):
        async with ClientSession(
            read,
            write,
            sampling_callback=peer.sample,
            elicitation_callback=peer.elicit,
            logging_callback=peer.log,
            message_handler=peer.hear,
        ) as session:
            with anyio.fail_after(15):
                hello = await session.initialize()
            peer.session = session
            peer.version = hello.protocolVersion
            peer.server_name = hello.serverInfo.name
            peer.session_id = session_id[0]() if session_id else None
            yield peer


if __name__ == "__main__":
    main(connect)
