"""Pydantic AI's agent, its servers loaded from a file of the shape that desktop clients use."""

import json
from pathlib import Path

from driver import MODEL, PROMPT, model_url, run, server


async def ask():
    from pydantic_ai import Agent
    from pydantic_ai.mcp import load_mcp_toolsets
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    file = Path("mcp.json")
    file.write_text(json.dumps({"mcpServers": {"probe": server()}}))
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=model_url("/v1"), api_key="none"))
    agent = Agent(model, toolsets=load_mcp_toolsets(file))
    async with agent:
        return (await agent.run(PROMPT)).output


run(ask)
