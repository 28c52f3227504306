"""Clients on the official Python SDK 1.x; `crowd.py` says what they do."""

from contextlib import asynccontextmanager

from crowd import crowd
from mcp import ClientSession, McpError, types
from mcp.client.streamable_http import streamable_http_client

INFO = types.Implementation(name="crowd", version="1.0.0")


class Peer:
    ProtocolError = McpError

    def __init__(self, session):
        self.session = session

    async def names(self):
        return {tool.name for tool in (await self.session.list_tools()).tools}

    async def call(self, name, arguments):
        result = await self.session.call_tool(name, arguments)
        return "" if result.isError else result.model_dump_json()


@asynccontextmanager
async def connect(url):
    async with streamable_http_client(url) as (read, write, _):
        async with ClientSession(read, write, client_info=INFO) as session:
            await session.initialize()
            yield Peer(session)


if __name__ == "__main__":
    crowd(connect)
