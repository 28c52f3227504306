"""The official Python SDK 1.x, without an agent: one call."""

from datetime import timedelta

from driver import limit, run, server


async def ask():
    from mcp import ClientSession, StdioServerParameters, stdio_client

    settings = limit(read_timeout_seconds=lambda seconds: timedelta(seconds=seconds))
    parameters = StdioServerParameters(**server())
    async with stdio_client(parameters) as streams, ClientSession(*streams, **settings) as session:
        await session.initialize()
        await session.list_tools()
        result = await session.call_tool("slow_probe", {})
        return result.content[0].text


run(ask)
