"""Strands Agents: the agent starts the server because its client is among the tools."""

import asyncio

from driver import MODEL, PROMPT, model_url, run, server


def converse():
    from mcp import StdioServerParameters, stdio_client
    from strands import Agent
    from strands.models.openai import OpenAIModel
    from strands.tools.mcp import MCPClient

    probe = MCPClient(lambda: stdio_client(StdioServerParameters(**server())))
    model = OpenAIModel(client_args={"base_url": model_url("/v1"), "api_key": "none"}, model_id=MODEL)
    agent = Agent(model=model, tools=[probe], callback_handler=None)
    return str(agent(PROMPT)).strip()


async def ask():
    return await asyncio.to_thread(converse)


run(ask)
