"""Clients on the official Python SDK 2.x, in the legacy era; `crowd.py` says what they do."""

from contextlib import asynccontextmanager

import mcp_types as types
from crowd import crowd
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

INFO = types.Implementation(name="crowd", version="1.0.0")


class Peer:
    ProtocolError = MCPError

    def __init__(self, client):
        self.client = client

    async def names(self):
        return {tool.name for tool in (await self.client.list_tools(cache_mode="bypass")).tools}

    async def call(self, name, arguments):
        result = await self.client.call_tool(name, arguments)
        return "" if result.is_error else result.model_dump_json()


@asynccontextmanager
async def connect(url):
    async with Client(streamable_http_client(url), mode="legacy", client_info=INFO) as client:
        yield Peer(client)


if __name__ == "__main__":
    crowd(connect)
