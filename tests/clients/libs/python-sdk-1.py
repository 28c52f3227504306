"""The official Python SDK 1.x, without an agent: one call."""

from driver import run, server


async def ask():
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async with stdio_client(StdioServerParameters(**server())) as streams, ClientSession(*streams) as session:
        await session.initialize()
        await session.list_tools()
        result = await session.call_tool("slow_probe", {})
        return result.content[0].text


run(ask)
