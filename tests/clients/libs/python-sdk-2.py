"""The official Python SDK 2.x, without an agent: one call."""

from driver import limit, run, server


async def ask():
    from mcp import Client, StdioServerParameters

    async with Client(StdioServerParameters(**server()), **limit(read_timeout_seconds=float)) as client:
        await client.list_tools()
        result = await client.call_tool("slow_probe", {})
        return result.content[0].text


run(ask)
